package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

func validateClusterRole(r *rbacv1.ClusterRole) field.ErrorList {
	errs := validateParts(r.Rules, false, field.NewPath("rules"))
	errs = append(errs, validateAggregation(r.AggregationRule)...)
	return append(errs, requireVerbs(r.Rules, field.NewPath("rules"))...)
}

func validateAggregation(r *rbacv1.AggregationRule) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	at := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(r.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range r.ClusterRoleSelectors {
		selector := &r.ClusterRoleSelectors[i]
		errs = append(errs, check.LabelSelector(selector, at.Index(i))...)
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), nil, "invalid label selector."))
		}
	}
	return errs
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool, at *field.Path) field.ErrorList {
	return append(validateParts(rules, namespaced, at), requireVerbs(rules, at)...)
}

func validateParts(rules []rbacv1.PolicyRule, namespaced bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, validateRule(&rules[i], namespaced, at.Index(i))...)
	}
	return errs
}

// requireVerbs comes after all other checks, like all declarative validation in
// upstream.
func requireVerbs(rules []rbacv1.PolicyRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		if len(rules[i].Verbs) == 0 {
			errs = append(errs, field.Required(at.Index(i).Child("verbs"), ""))
		}
	}
	return errs
}

// validateRule checks that a rule is about resources or about other paths, but
// not both, and in a namespace only about resources.
func validateRule(rule *rbacv1.PolicyRule, namespaced bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rule.NonResourceURLs) > 0 {
		if namespaced {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs,
				"namespaced rules cannot apply to non-resource URLs"))
		}
		if len(rule.APIGroups) > 0 || len(rule.Resources) > 0 || len(rule.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs,
				"rules cannot apply to both regular resources and non-resource URLs"))
		}
		return errs
	}
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}

// validateBinding checks required names last, as upstream does.
func validateBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool, kinds ...string) field.ErrorList {
	errs := append(validateRoleRef(ref, kinds...), validateSubjects(subjects, namespaced)...)
	for i := range subjects {
		errs = append(errs, check.Required(field.NewPath("subjects").Index(i), "name", subjects[i].Name)...)
	}
	return append(errs, check.Required(field.NewPath("roleRef"), "name", ref.Name)...)
}

func validateRoleRef(ref rbacv1.RoleRef, kinds ...string) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	known := false
	for _, kind := range kinds {
		known = known || kind == ref.Kind
	}
	if !known {
		errs = append(errs, field.NotSupported(at.Child("kind"), ref.Kind, kinds))
	}
	if ref.Name != "" {
		errs = append(errs, check.Messages(at.Child("name"), ref.Name, check.NameIsSegment(ref.Name, false))...)
	}
	return errs
}

func sameRoleRef(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), ref, "field is immutable")}
}

func validateSubjects(subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(s *rbacv1.Subject, namespaced bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			errs = append(errs, check.Messages(at.Child("name"), s.Name, check.NameIsSubdomain(s.Name, false))...)
		}
		if s.APIGroup != "" {
			errs = append(errs, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{""}))
		}
		// In a role binding, an empty namespace would mean the binding's own, which
		// upstream does not promise; there it is just not required.
		if !namespaced && s.Namespace == "" {
			errs = append(errs, field.Required(at.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		if s.APIGroup != rbacv1.GroupName {
			errs = append(errs, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{rbacv1.GroupName}))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	return errs
}
