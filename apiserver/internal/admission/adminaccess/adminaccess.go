// Package adminaccess restricts claims with administrative access to devices
// that others use (adminAccess), and such allocations, to namespaces that are
// labelled for it (Kubernetes docs, "Dynamic Resource Allocation", "Admin
// access").
//
// It is at the end of the admission chain and can't be switched off.
package adminaccess

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Plugin is the check.
type Plugin struct {
	admission.OnWrites // a claim's requests are immutable, and an update of its status allocates
	Namespaces         *lookup.Objects[*core.Namespace]
}

// Validate implements admission.Validator.
func (p Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	at := newAdminAccess(a)
	if at == nil {
		return nil
	}
	namespace, err := p.Namespaces.Get(ctx, "", a.Namespace)
	if err != nil {
		return fmt.Errorf("the namespace of a claim with admin access: %w", err)
	}
	if namespace.Labels[resourcev1.DRAAdminNamespaceLabelKey] == "true" {
		return nil
	}
	const needs = "admin access to devices requires the `" + resourcev1.DRAAdminNamespaceLabelKey + ": true` label on the containing namespace"
	return registry.Invalid(a.Resource.GVK().GroupKind(), a.Name, field.ErrorList{field.Forbidden(at, needs)})
}

// newAdminAccess is the path of the first new adminAccess in the object, or nil. For a
// template it is the path within a claim, as upstream does.
func newAdminAccess(a *admission.Attributes) *field.Path {
	switch obj := a.Object.(type) {
	case *resourcev1.ResourceClaim:
		old, _ := a.OldObject.(*resourcev1.ResourceClaim)
		switch {
		case a.Operation == admission.Create && a.Subresource == "":
			return specAdminAccess(&obj.Spec)
		case a.Subresource == "status" && (old == nil || allocatedAdminAccess(old) == nil):
			return allocatedAdminAccess(obj)
		}
	case *resourcev1.ResourceClaimTemplate:
		if a.Operation == admission.Create {
			return specAdminAccess(&obj.Spec.Spec)
		}
	}
	return nil
}

func specAdminAccess(spec *resourcev1.ResourceClaimSpec) *field.Path {
	i := slices.IndexFunc(spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && ptr.Deref(r.Exactly.AdminAccess, false)
	})
	if i < 0 {
		return nil
	}
	return field.NewPath("spec", "devices", "requests").Index(i).Child("adminAccess")
}

func allocatedAdminAccess(c *resourcev1.ResourceClaim) *field.Path {
	if c.Status.Allocation == nil {
		return nil
	}
	i := slices.IndexFunc(c.Status.Allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
		return ptr.Deref(r.AdminAccess, false)
	})
	if i < 0 {
		return nil
	}
	return field.NewPath("status", "allocation", "devices", "results").Index(i).Child("adminAccess")
}
