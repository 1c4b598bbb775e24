package policy

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
