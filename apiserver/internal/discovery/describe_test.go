package discovery

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// described is a resource with a status and another subresource.
type described struct{ registry.Resource }

func (d described) Info() registry.Info {
	info := d.Resource.Info()
	info.HasStatus, info.Subresources = true, []string{"resize"}
	return info
}

func TestDescribe(t *testing.T) {
	type connect = func(context.Context, http.ResponseWriter, *http.Request, string, string) error
	served := registry.Served{Resource: described{registrytest.New(core.Pods)}, Subresources: []registry.Subresource{
		{Name: "scale", Object: registrytest.New(core.Pods)},
		{Name: "exec", Connect: map[string]connect{http.MethodPost: nil, http.MethodGet: nil}},
		{Name: "proxy", Connect: map[string]connect{
			http.MethodPut: nil, http.MethodPatch: nil, http.MethodDelete: nil, http.MethodGet: nil, http.MethodPost: nil, http.MethodHead: nil,
		}},
		{Name: "binding", Create: func(context.Context, string, string, runtime.Object, *metav1.CreateOptions) (runtime.Object, error) {
			return nil, nil
		}},
	}}
	d := Describe(served)
	if got, want := fmt.Sprint(d.Verbs), "[create delete deletecollection get list patch update watch]"; got != want {
		t.Errorf("verbs %s, want %s", got, want)
	}
	var got []string
	for _, sub := range d.Subresources {
		got = append(got, fmt.Sprint(sub.Name, sub.Verbs))
	}
	want := []string{"binding[create]", "exec[create get]", "proxy[create delete get patch update]", "resize[get patch update]", "scale[get patch update]",
		"status[get patch update]"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("subresources %v, want %v", got, want)
	}
}
