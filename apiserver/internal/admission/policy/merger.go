package policy

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/managed"
	"kctl/apiserver/internal/shape"
	"kctl/proto/core"
)

// mergers merge what policies apply, a kind each. They are made when they are
// first needed.
type mergers struct {
	mu   sync.Mutex
	made map[reflect.Type]*managed.Manager
}

// of returns what merges objects of a kind: whoever keeps account of the
// request's objects, or, for another form of them and for what is posted to
// subresources, what their Go type says. Custom resources are merged by what
// they look like: their objects field by field, their lists as a whole.
func (m *mergers) of(a *admission.Attributes, object core.Object, kind schema.GroupVersionKind) *managed.Manager {
	_, custom := object.(runtime.Unstructured)
	if a.Accounts != nil && kind == a.Resource.GVK() && !custom {
		return a.Accounts
	}
	t := reflect.TypeOf(object).Elem()
	form := func() *shape.Shape {
		if custom {
			return shape.Anything
		}
		return shape.Of(t)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if made := m.made[t]; made != nil {
		return made
	}
	made := managed.New(managed.Options{
		Kind:  kind,
		Shape: form,
		New:   func() core.Object { return reflect.New(t).Interface().(core.Object) },
		Clock: clock.RealClock{}, // it keeps no accounts
	})
	if m.made == nil {
		m.made = map[reflect.Type]*managed.Manager{}
	}
	m.made[t] = made
	return made
}
