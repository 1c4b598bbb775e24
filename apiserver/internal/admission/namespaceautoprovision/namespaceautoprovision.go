// Package namespaceautoprovision creates the namespace of a new object if it
// does not exist. It is off by default.
package namespaceautoprovision

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "NamespaceAutoProvision"

// Namespaces finds namespaces; lookup.Objects does.
type Namespaces interface {
	Get(ctx context.Context, namespace, name string) (*core.Namespace, error)
}

// Store creates namespaces: their registry.Resource.
type Store interface {
	Create(ctx context.Context, obj core.Object, admit registry.Admission, o *metav1.CreateOptions) (registry.Encoded, error)
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnCreates
	namespaces Namespaces
	store      Store
}

// New returns the plugin.
func New(namespaces Namespaces, store Store) *Plugin {
	return &Plugin{namespaces: namespaces, store: store}
}

// Admit creates the namespace, except in a dry run.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	if a.DryRun || a.Namespace == "" || a.Resource == core.Namespaces {
		return nil
	}
	_, err := p.namespaces.Get(ctx, "", a.Namespace)
	if !apierrors.IsNotFound(err) {
		return err
	}
	missing := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
	_, err = p.store.Create(ctx, missing, registry.Admission{}, &metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
