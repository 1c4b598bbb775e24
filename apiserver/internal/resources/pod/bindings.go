package pod

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Bindings is where Bindings are posted: a resource that can only be created
// and is never stored. It is the older form of pods/binding.
var Bindings = core.Resource{Version: "v1", Name: "bindings", Kind: "Binding", Namespaced: true}

// bindings serves Bindings through a Binder.
type bindings struct{ binder *Binder }

// NewBindings returns the resource.
func NewBindings(binder *Binder) registry.Resource { return bindings{binder} }

func (b bindings) Info() registry.Info {
	return registry.Info{Resource: Bindings, Singular: "binding", Verbs: []string{"create"}}
}

func (b bindings) New() core.Object                             { return new(core.Binding) }
func (b bindings) Default(core.Object)                          {}
func (b bindings) Row(obj core.Object) []any                    { return []any{obj.GetName()} }
func (b bindings) refuse(verb string) error                     { return apierrors.NewMethodNotSupported(b.group(), verb) }
func (b bindings) group() schema.GroupResource                  { return Bindings.GVR().GroupResource() }
func (b bindings) Decode(registry.Encoded) (core.Object, error) { return nil, b.refuse("get") }

func (b bindings) Get(context.Context, string, string, string) (registry.Encoded, error) {
	return registry.Encoded{}, b.refuse("get")
}

func (b bindings) List(context.Context, string, registry.ListOptions) (registry.List, error) {
	return registry.List{}, b.refuse("list")
}

func (b bindings) Watch(context.Context, string, registry.ListOptions) (registry.Watcher, error) {
	return nil, b.refuse("watch")
}

func (b bindings) Create(ctx context.Context, obj core.Object, admit registry.Admit, o *metav1.CreateOptions) (registry.Encoded, error) {
	if admit.Mutate != nil {
		if err := admit.Mutate(ctx, obj, nil); err != nil {
			return registry.Encoded{}, err
		}
	}
	if admit.Validate != nil {
		if err := admit.Validate(ctx, obj, nil); err != nil {
			return registry.Encoded{}, err
		}
	}
	status, err := b.binder.Bind(ctx, obj.GetNamespace(), obj.GetName(), obj.(*core.Binding), o)
	if err != nil {
		return registry.Encoded{}, err
	}
	return encode(status)
}

func (b bindings) Update(context.Context, string, string, string, func(core.Object) (core.Object, error), registry.Admit, *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	return registry.Encoded{}, false, b.refuse("update")
}

func (b bindings) Delete(context.Context, string, string, registry.Admit, *metav1.DeleteOptions) (registry.Encoded, bool, error) {
	return registry.Encoded{}, false, b.refuse("delete")
}

func (b bindings) DeleteCollection(context.Context, string, registry.Admit, *metav1.DeleteOptions, registry.ListOptions) (registry.List, error) {
	return registry.List{}, b.refuse("deletecollection")
}

func encode(status *metav1.Status) (registry.Encoded, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return registry.Encoded{}, apierrors.NewInternalError(fmt.Errorf("encoding the answer: %w", err))
	}
	return registry.Encoded{JSON: data}, nil
}
