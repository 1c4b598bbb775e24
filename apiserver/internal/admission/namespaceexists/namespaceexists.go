// Package namespaceexists refuses all requests in a namespace that does not
// exist. NamespaceLifecycle does so for creates; this one also for changes and
// deletions, and is off by default.
package namespaceexists

import (
	"context"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "NamespaceExists"

// Namespaces finds namespaces; lookup.Objects does.
type Namespaces interface {
	Get(ctx context.Context, namespace, name string) (*core.Namespace, error)
}

// Plugin is the plugin.
type Plugin struct{ namespaces Namespaces }

// New returns the plugin.
func New(namespaces Namespaces) *Plugin { return &Plugin{namespaces} }

// Handles all changes.
func (*Plugin) Handles(op admission.Operation) bool { return op != admission.Connect }

// Validate answers 404 if there is no such namespace.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Namespace == "" || a.Resource == core.Namespaces {
		return nil
	}
	_, err := p.namespaces.Get(ctx, "", a.Namespace)
	return err
}
