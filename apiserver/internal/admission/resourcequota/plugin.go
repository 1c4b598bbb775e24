// Package resourcequota refuses what would exceed the resource quotas of its
// namespace, and charges in their status what is about to be used (Kubernetes
// docs, "Resource Quotas").
//
// It runs after every other plugin, so that what they refuse is not charged.
// Package quota tracks the usage.
package resourcequota

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/quota"
)

// Name is upstream's name.
const Name = "ResourceQuota"

// Usage is where the plugin charges; quota.Usage is one.
type Usage interface {
	Reserve(ctx context.Context, c quota.Change) error
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	usage   Usage
	quotas  quota.Quotas
	limited []quota.LimitedResource
}

// New returns the plugin; its configuration is optional.
func New(usage Usage, quotas quota.Quotas, files configuration.Files) (*Plugin, error) {
	var settings struct {
		LimitedResources []quota.LimitedResource `json:"limitedResources"`
	}
	kind := configuration.Kind{Kind: "ResourceQuotaConfiguration", Versions: []string{"apiserver.config.k8s.io/v1"}}
	if _, err := files.Decode(Name, kind, &settings); err != nil {
		return nil, err
	}
	for i, l := range settings.LimitedResources {
		if l.Resource == "" {
			return nil, fmt.Errorf("configuration of %s: limitedResources[%d]: resource: Required value", Name, i)
		}
	}
	return &Plugin{usage: usage, quotas: quotas, limited: settings.LimitedResources}, nil
}

// Validate charges the object to the quotas that apply to it.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Namespace == "" || a.Object == nil {
		return nil
	}
	if _, ok := a.Object.(*corev1.ResourceQuota); ok && a.Operation == admission.Create && a.Subresource == "" {
		p.quotas.Forget(a.Namespace)
	}
	resource := a.Resource.GVR().GroupResource()
	// Few updates can increase usage: pods that are resized, or that come under
	// another quota because they get a deadline.
	changes := a.Operation == admission.Update && quota.UsageCanChange(resource) && (a.Subresource == "" || a.Subresource == "resize")
	if isNew := a.Operation == admission.Create && a.Subresource == ""; !isNew && !changes {
		return nil
	}
	return p.usage.Reserve(ctx, quota.Change{
		Resource: resource, Namespace: a.Namespace, New: a.Object, Old: a.OldObject, DryRun: a.DryRun, LimitedResources: p.limited,
	})
}
