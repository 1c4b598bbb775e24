package policy

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

// mergers merge what policies apply, one per kind. They are made when first
// needed.
type mergers struct {
	mu       sync.Mutex
	trackers map[reflect.Type]*managedfields.Tracker
}

// get returns the merger for objects of a kind: the request's own tracker or, for
// another form of its objects and for subresources' own kinds, one based on the
// Go type. Custom resources are merged by structure: objects field by field,
// lists as a whole.
func (m *mergers) get(a *admission.Attributes, object core.Object, kind schema.GroupVersionKind) *managedfields.Tracker {
	_, custom := object.(runtime.Unstructured)
	if a.FieldTracker != nil && kind == a.Resource.GVK() && !custom {
		return a.FieldTracker
	}
	t := reflect.TypeOf(object).Elem()
	form := func() *mergeschema.Schema {
		if custom {
			return mergeschema.Anything
		}
		return mergeschema.Of(t)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if made := m.trackers[t]; made != nil {
		return made
	}
	made := managedfields.New(managedfields.Options{
		Kind:   kind,
		Schema: form,
		New:    func() core.Object { return reflect.New(t).Interface().(core.Object) },
		Clock:  clock.RealClock{}, // it only merges
	})
	if m.trackers == nil {
		m.trackers = map[reflect.Type]*managedfields.Tracker{}
	}
	m.trackers[t] = made
	return made
}
