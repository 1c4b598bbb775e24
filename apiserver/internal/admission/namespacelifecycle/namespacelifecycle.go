// Package namespacelifecycle refuses new objects in namespaces that don't exist
// or are being deleted, and protects the namespaces every cluster needs.
package namespacelifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "NamespaceLifecycle"

// Namespaces finds namespaces; lookup.Objects does.
type Namespaces interface {
	Get(ctx context.Context, namespace, name string) (*core.Namespace, error)
	Live(ctx context.Context, namespace, name string) (*core.Namespace, error)
}

// Plugin is the plugin.
type Plugin struct{ namespaces Namespaces }

// New returns the plugin.
func New(namespaces Namespaces) *Plugin { return &Plugin{namespaces} }

// Handles creates and deletions.
func (*Plugin) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Delete
}

var undeletable = map[string]bool{core.NamespaceDefault: true, core.NamespaceSystem: true, core.NamespacePublic: true}

// Admit refuses; it is a mutating plugin, like upstream's, only to be the first
// of all.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	resource := a.Resource.GVR().GroupResource()
	if a.Operation == admission.Delete {
		if a.Resource.Name == core.Namespaces.Name && a.Resource.Group == "" && undeletable[a.Name] {
			return apierrors.NewForbidden(resource, a.Name, fmt.Errorf("this namespace may not be deleted"))
		}
		return nil
	}
	if !a.Resource.Namespaced || a.Namespace == "" || a.Resource.Name == "localsubjectaccessreviews" {
		return nil
	}
	namespace, err := p.namespaces.Get(ctx, "", a.Namespace)
	if err == nil && namespace.Status.Phase == corev1.NamespaceTerminating {
		// It may have been deleted and created again since the cache saw it.
		namespace, err = p.namespaces.Live(ctx, "", a.Namespace)
	}
	if err != nil {
		return err
	}
	if namespace.Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	refusal := apierrors.NewForbidden(resource, a.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.Namespace))
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", a.Namespace),
		Field:   "metadata.namespace",
	})
	return refusal
}
