package reviews

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/registry"
)

var specPath = field.NewPath("spec")

// invalid refuses an access review. Upstream names no kind.
func invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return registry.Invalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

func validateSpec(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := validateAttributes(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(specPath.Child("user"), spec.User, "at least one of user or group must be specified"))
	}
	return errs
}

func validateAttributes(resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	var errs field.ErrorList
	if (resource == nil) == (path == nil) {
		errs = append(errs, field.Invalid(specPath, path, "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if resource == nil {
		return errs
	}
	at := specPath.Child("resourceAttributes")
	if s := resource.FieldSelector; s != nil {
		errs = append(errs, validateSelector(s.RawSelector, s.Requirements, at.Child("fieldSelector"),
			func(r metav1.FieldSelectorRequirement, at *field.Path) field.ErrorList {
				return validation.ValidateFieldSelectorRequirement(r,
					validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at)
			})...)
	}
	if s := resource.LabelSelector; s != nil {
		errs = append(errs, validateSelector(s.RawSelector, s.Requirements, at.Child("labelSelector"),
			func(r metav1.LabelSelectorRequirement, at *field.Path) field.ErrorList {
				return validation.ValidateLabelSelectorRequirement(r,
					validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at)
			})...)
	}
	return errs
}

// validateSelector checks that a selector is given in only one of the two ways.
func validateSelector[R any](raw string, requirements []R, at *field.Path, validate func(R, *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	switch {
	case raw != "" && len(requirements) > 0:
		errs = append(errs, field.Invalid(at.Child("rawSelector"), raw, "may not specified at the same time as requirements"))
	case raw == "" && len(requirements) == 0:
		errs = append(errs, field.Required(at.Child("requirements"), "when "+at.String()+
			" is specified, requirements or rawSelector is required"))
	}
	for i, r := range requirements {
		errs = append(errs, validate(r, at.Child("requirements").Index(i))...)
	}
	return errs
}

func validateLocal(obj *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
	errs := append(validateSpec(&obj.Spec), validateMetadata(obj.ObjectMeta)...)
	if r := obj.Spec.ResourceAttributes; r != nil && r.Namespace != obj.Namespace {
		errs = append(errs, field.Invalid(specPath.Child("resourceAttributes", "namespace"), r.Namespace, "must match metadata.namespace"))
	}
	if path := obj.Spec.NonResourceAttributes; path != nil {
		errs = append(errs, field.Invalid(specPath.Child("nonResourceAttributes"), path, "disallowed on this kind of request"))
	}
	return errs
}

// validateMetadata checks that a review has no name. A namespace is harmless, and
// metadata that only a stored object has is ignored.
func validateMetadata(m metav1.ObjectMeta) field.ErrorList {
	m.Namespace, m.ManagedFields = "", nil
	m.UID, m.SelfLink, m.CreationTimestamp, m.DeletionTimestamp, m.DeletionGracePeriodSeconds = "", "", metav1.Time{}, nil, nil
	if equality.Semantic.DeepEqual(m, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), m, "must be empty")}
}
