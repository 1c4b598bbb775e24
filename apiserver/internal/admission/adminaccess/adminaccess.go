// Package adminaccess keeps claims that reach into devices which others use
// (adminAccess) to namespaces that are marked for administrators (Kubernetes
// docs, "Dynamic Resource Allocation", "Admin access").
//
// It stands at the end of the admission chain and can't be switched off.
package adminaccess

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Plugin is the check.
type Plugin struct {
	Namespaces *lookup.Objects[*core.Namespace]
}

// Handles implements admission.Plugin. What a claim asks for does not change.
func (Plugin) Handles(op admission.Operation) bool { return op == admission.Create }

// Validate implements admission.Validator.
func (p Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Subresource != "" {
		return nil
	}
	var spec *resourcev1.ResourceClaimSpec
	at := field.NewPath("spec")
	switch obj := a.Object.(type) {
	case *resourcev1.ResourceClaim:
		spec = &obj.Spec
	case *resourcev1.ResourceClaimTemplate:
		spec, at = &obj.Spec.Spec, at.Child("spec")
	default:
		return nil
	}
	errs := asked(spec, at)
	if len(errs) == 0 {
		return nil
	}
	namespace, err := p.Namespaces.Get(ctx, "", a.Namespace)
	if err != nil {
		return fmt.Errorf("the namespace of a claim with admin access: %w", err)
	}
	if namespace.Labels[resourcev1.DRAAdminNamespaceLabelKey] == "true" {
		return nil
	}
	return registry.Invalid(schema.GroupKind{Group: a.Resource.Group, Kind: a.Resource.Kind}, a.Name, errs)
}

// asked refuses each request for admin access.
func asked(spec *resourcev1.ResourceClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, request := range spec.Devices.Requests {
		if request.Exactly != nil && ptr.Deref(request.Exactly.AdminAccess, false) {
			errs = append(errs, field.Forbidden(at.Child("devices", "requests").Index(i).Child("adminAccess"),
				fmt.Sprintf("admin access to devices requires the `%s: true` label on the containing namespace", resourcev1.DRAAdminNamespaceLabelKey)))
		}
	}
	return errs
}
