package flowcontrol

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/resources/check"
)

// maxPrecedence is the last place in the order in which schemas are tried.
const maxPrecedence = 10000

func validateSchema(s *flowcontrolv1.FlowSchema) field.ErrorList {
	errs := validateMandatorySchema(s)
	precedence := specPath.Child("matchingPrecedence")
	switch n := s.Spec.MatchingPrecedence; {
	case n <= 0:
		errs = append(errs, field.Invalid(precedence, n, "must be a positive value"))
	case n > maxPrecedence:
		errs = append(errs, field.Invalid(precedence, n, fmt.Sprintf("must not be greater than %v", maxPrecedence)))
	case n == 1 && s.Name != exemptName:
		errs = append(errs, field.Invalid(precedence, n, "only the schema named 'exempt' may have matchingPrecedence 1"))
	}
	if m := s.Spec.DistinguisherMethod; m != nil {
		types := []flowcontrolv1.FlowDistinguisherMethodType{flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType}
		if !slices.Contains(types, m.Type) {
			errs = append(errs, field.NotSupported(specPath.Child("distinguisherMethod", "type"), check.Spelled{Value: *m}, types))
		}
	}
	level := specPath.Child("priorityLevelConfiguration", "name")
	if name := s.Spec.PriorityLevelConfiguration.Name; name == "" {
		errs = append(errs, field.Required(level, "must reference a priority level"))
	} else {
		errs = append(errs, check.Messages(level, name, check.NameIsSubdomain(name, false))...)
	}
	for i := range s.Spec.Rules {
		errs = append(errs, validateRule(&s.Spec.Rules[i], specPath.Child("rules").Index(i))...)
	}
	return errs
}

func validateRule(r *flowcontrolv1.PolicyRulesWithSubjects, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Subjects) == 0 {
		errs = append(errs, field.Required(at.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range r.Subjects {
		errs = append(errs, validateSubject(&r.Subjects[i], at.Child("subjects").Index(i))...)
	}
	if len(r.ResourceRules) == 0 && len(r.NonResourceRules) == 0 {
		errs = append(errs, field.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i, rule := range r.ResourceRules {
		path := at.Child("resourceRules").Index(i)
		errs = append(errs, list(rule.Verbs, "verbs", path)...)
		errs = append(errs, list(rule.APIGroups, "apiGroups", path)...)
		errs = append(errs, list(rule.Resources, "resources", path)...)
		if len(rule.Namespaces) == 0 && !rule.ClusterScope {
			errs = append(errs, field.Required(path.Child("namespaces"), "resource rules that are not cluster scoped must supply at least one namespace"))
		}
	}
	for i, rule := range r.NonResourceRules {
		path := at.Child("nonResourceRules").Index(i)
		errs = append(errs, list(rule.Verbs, "verbs", path)...)
		errs = append(errs, list(rule.NonResourceURLs, "nonResourceURLs", path)...)
		for k, url := range rule.NonResourceURLs {
			if url != "*" && !strings.HasPrefix(url, "/") {
				errs = append(errs, field.Invalid(path.Child("nonResourceURLs").Index(k), url, "must start with slash"))
			}
		}
	}
	return errs
}

// list checks that a list of a rule says something, and that "*" stands alone.
func list(values []string, name string, at *field.Path) field.ErrorList {
	switch {
	case len(values) == 0:
		return field.ErrorList{field.Required(at.Child(name), name+" must contain at least one value")}
	case len(values) > 1 && slices.Contains(values, "*"):
		return field.ErrorList{field.Invalid(at.Child(name), values, "if '*' is present, must not specify other "+name)}
	}
	return nil
}

func validateSubject(s *flowcontrolv1.Subject, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	parts := []struct {
		kind flowcontrolv1.SubjectKind
		name string
		set  bool
	}{
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", s.ServiceAccount != nil},
		{flowcontrolv1.SubjectKindUser, "user", s.User != nil},
		{flowcontrolv1.SubjectKindGroup, "group", s.Group != nil},
	}
	var kinds []flowcontrolv1.SubjectKind
	for _, p := range parts {
		kinds = append(kinds, p.kind)
		switch {
		case p.kind == s.Kind && !p.set:
			errs = append(errs, field.Required(at.Child(p.name), p.name+" is required when subject kind is '"+string(s.Kind)+"'"))
		case p.kind != s.Kind && p.set:
			errs = append(errs, field.Forbidden(at.Child(p.name), p.name+" is forbidden when subject kind is not '"+string(p.kind)+"'"))
		}
	}
	if !slices.Contains(kinds, s.Kind) {
		return check.Supported(s.Kind, at.Child("kind"), kinds...)
	}
	switch {
	case s.User != nil && s.User.Name == "":
		errs = append(errs, field.Required(at.Child("user", "name"), ""))
	case s.Group != nil && s.Group.Name == "":
		errs = append(errs, field.Required(at.Child("group", "name"), ""))
	case s.ServiceAccount != nil && s.ServiceAccount.Name == "":
		errs = append(errs, field.Required(at.Child("serviceAccount", "name"), ""))
	case s.ServiceAccount != nil && s.ServiceAccount.Namespace == "":
		errs = append(errs, field.Required(at.Child("serviceAccount", "namespace"), "must specify namespace for service account"))
	}
	return errs
}
