// Package resourcequota refuses what would use more than the resource quotas of
// its namespace allow, and writes down in their status what is about to be used
// (Kubernetes docs, "Resource Quotas").
//
// It stands behind every other plugin: what they refuse costs nothing. What is
// used is kept by package quota.
package resourcequota

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/quota"
)

// Name is upstream's name.
const Name = "ResourceQuota"

// Usage is where the plugin reserves; quota.Usage is one.
type Usage interface {
	Reserve(ctx context.Context, c quota.Change) error
}

// Plugin is the plugin.
type Plugin struct {
	usage  Usage
	quotas quota.Quotas
}

// New returns the plugin.
func New(usage Usage, quotas quota.Quotas) *Plugin { return &Plugin{usage, quotas} }

// Handles creates and updates.
func (*Plugin) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate charges the object to the quotas that it counts for.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Namespace == "" || a.Object == nil {
		return nil
	}
	if _, ok := a.Object.(*corev1.ResourceQuota); ok && a.Operation == admission.Create && a.Subresource == "" {
		p.quotas.Forget(a.Namespace)
	}
	resource := a.Resource.GVR().GroupResource()
	// Of what changes, only some can come to use more: pods that are resized, or
	// that come to be of another quota because they are to end.
	changes := a.Operation == admission.Update && quota.Changing(resource) && (a.Subresource == "" || a.Subresource == "resize")
	if isNew := a.Operation == admission.Create && a.Subresource == ""; !isNew && !changes {
		return nil
	}
	return p.usage.Reserve(ctx, quota.Change{
		Resource: resource, Namespace: a.Namespace, New: a.Object, Old: a.OldObject, Dry: a.DryRun,
	})
}
