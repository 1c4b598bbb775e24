package admissionregistration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var (
	actions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit, admissionregistrationv1.Deny,
		admissionregistrationv1.Warn}
	notFound = []admissionregistrationv1.ParameterNotFoundActionType{admissionregistrationv1.DenyAction, admissionregistrationv1.AllowAction}
)

func validateBinding(policy string, ref *admissionregistrationv1.ParamRef, m *admissionregistrationv1.MatchResources) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if policy == "" {
		errs = append(errs, field.Required(at.Child("policyName"), ""))
	} else {
		errs = append(errs, check.Messages(at.Child("policyName"), policy, validation.IsDNS1123Subdomain(policy))...)
	}
	errs = append(errs, validateParamRef(ref, at.Child("paramRef"))...)
	if m != nil {
		errs = append(errs, validateMatch(m, at.Child("matchResources"))...)
	}
	return errs
}

func validateParamRef(ref *admissionregistrationv1.ParamRef, at *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	var errs field.ErrorList
	if ref.Name != "" {
		errs = append(errs, check.Messages(at.Child("name"), ref.Name, content.IsPathSegmentName(ref.Name))...)
	}
	switch {
	case ref.Name != "" && ref.Selector != nil:
		const why = "name and selector are mutually exclusive"
		errs = append(errs, field.Forbidden(at.Child("name"), why), field.Forbidden(at.Child("selector"), why))
	case ref.Name == "" && ref.Selector == nil:
		errs = append(errs, field.Required(at, "one of name or selector must be specified"))
	}
	if ref.Selector != nil {
		errs = append(errs, check.LabelSelector(ref.Selector, at.Child("selector"))...)
	}
	if ptr.Deref(ref.ParameterNotFoundAction, "") == "" {
		return append(errs, field.Required(at.Child("parameterNotFoundAction"), ""))
	}
	return append(errs, supportedIfSet(ref.ParameterNotFoundAction, at.Child("parameterNotFoundAction"), notFound)...)
}

func validateActions(given []admissionregistrationv1.ValidationAction, at *field.Path) field.ErrorList {
	if len(given) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	seen := map[admissionregistrationv1.ValidationAction]bool{}
	for i := range given {
		errs = append(errs, check.SupportedInOrder(given[i], at.Index(i), actions...)...)
		if seen[given[i]] {
			errs = append(errs, field.Duplicate(at.Index(i), given[i]))
		}
		seen[given[i]] = true
	}
	if seen[admissionregistrationv1.Deny] && seen[admissionregistrationv1.Warn] {
		errs = append(errs, field.Invalid(at, given,
			"must not contain both Deny and Warn (repeating the same validation failure information in the API response "+
				"and headers serves no purpose)"))
	}
	return errs
}
