package policy

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// lagging is a resource of which the cache has not seen the newest object.
type lagging struct {
	registry.Resource
	newest string
}

func (lagging) Info() registry.Info { return registry.Info{Resource: core.ConfigMaps} }

func (r lagging) Get(_ context.Context, _, name, resourceVersion string) (registry.Encoded, error) {
	if resourceVersion == "0" || name != r.newest {
		return registry.Encoded{}, apierrors.NewNotFound(core.ConfigMaps.GVR().GroupResource(), name)
	}
	return registry.Encoded{JSON: []byte(`{"data":{"max":"3"}}`), Revision: 7}, nil
}

// A parameter that was created just now, which another server may have done, is
// found before the cache has it: else a policy that allows what it has no
// parameters for would not be in force.
func TestParametersTheCacheLacks(t *testing.T) {
	allow := admissionregistrationv1.AllowAction
	for name, want := range map[string]int{"new": 1, "none": 0} {
		b := &binding{ref: &admissionregistrationv1.ParamRef{Name: name, Namespace: "limits", ParameterNotFoundAction: &allow}}
		found, err := newParameters(nil).forBinding(t.Context(), b, lagging{newest: "new"}, &admission.Attributes{})
		if err != nil || len(found) != want {
			t.Errorf("%s: %v, %v; want %d", name, found, err, want)
		}
	}
}

// listed is a resource with these objects.
type listed struct {
	registry.Resource
	items []registry.Encoded
}

func (listed) Info() registry.Info { return registry.Info{Resource: core.ConfigMaps} }

func (r listed) List(context.Context, string, registry.ListOptions) (registry.List, error) {
	return registry.List{Items: r.items}, nil
}

// TestSelectedParametersAreDecodedOnce: a request does not pay for parameters that have not changed since the last one.
func TestSelectedParametersAreDecodedOnce(t *testing.T) {
	p := newParameters(nil)
	selecting := func(label string) *binding {
		return &binding{ref: &admissionregistrationv1.ParamRef{Namespace: "limits"}, selector: labels.SelectorFromSet(labels.Set{"a": label})}
	}
	find := func(b *binding, items ...registry.Encoded) []map[string]any {
		t.Helper()
		found, err := p.forBinding(t.Context(), b, listed{items: items}, &admission.Attributes{})
		if err != nil || len(found) != len(items) {
			t.Fatalf("%v, %v", found, err)
		}
		return found
	}
	object := func(revision int64, content string) registry.Encoded {
		return registry.Encoded{JSON: []byte(`{"data":{"max":"` + content + `"}}`), Revision: revision}
	}
	same := func(a, b map[string]any) bool {
		return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	}
	first := find(selecting("x"), object(1, "1"), object(2, "2"))
	again := find(selecting("x"), object(2, "2"), object(3, "3"), object(1, "another"))
	if !same(first[1], again[0]) || same(first[0], again[2]) || again[2]["data"].(map[string]any)["max"] != "another" {
		t.Errorf("found %v, then %v", first, again)
	}
	if others := find(selecting("y"), object(3, "3")); same(others[0], again[1]) {
		t.Error("another selector's are shared")
	}
	large := strings.Repeat("x", maxCached/2)
	for i := range int64(5) {
		find(selecting(fmt.Sprint("large-", i)), object(i, large))
		if p.size > maxCached {
			t.Errorf("%d bytes are cached", p.size)
		}
	}
	find(selecting("x"), object(1, large), object(2, large), object(3, large))
	size := 0
	for _, d := range p.cache {
		size += d.size
	}
	if size != p.size || size > maxCached {
		t.Errorf("%d bytes are cached, counted as %d", size, p.size)
	}
}
