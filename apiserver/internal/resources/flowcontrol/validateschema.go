package flowcontrol

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// maxPrecedence is the highest precedence value, tried last.
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
		types := []flowcontrolv1.FlowDistinguisherMethodType{flowcontrolv1.FlowDistinguisherMethodByNamespaceType,
			flowcontrolv1.FlowDistinguisherMethodByUserType}
		if !slices.Contains(types, m.Type) {
			errs = append(errs, field.NotSupported(specPath.Child("distinguisherMethod", "type"), check.GoFieldNames{Value: *m}, types))
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
	for i := range r.ResourceRules {
		errs = append(errs, validateResources(&r.ResourceRules[i], at.Child("resourceRules").Index(i))...)
	}
	for i, rule := range r.NonResourceRules {
		path := at.Child("nonResourceRules").Index(i)
		errs = append(errs, verbs(rule.Verbs, path)...)
		errs = append(errs, list(rule.NonResourceURLs, path.Child("nonResourceURLs"),
			"nonResourceURLs must contain at least one value", "non-resource URLs")...)
		for k, url := range rule.NonResourceURLs {
			if problem := urlProblem(url); problem != "" {
				errs = append(errs, field.Invalid(path.Child("nonResourceURLs").Index(k), url, problem))
			}
		}
	}
	return errs
}

func validateResources(r *flowcontrolv1.ResourcePolicyRule, at *field.Path) field.ErrorList {
	errs := verbs(r.Verbs, at)
	errs = append(errs, list(r.APIGroups, at.Child("apiGroups"), "resource rules must supply at least one api group", "api groups")...)
	errs = append(errs, list(r.Resources, at.Child("resources"), "resource rules must supply at least one resource", "resources")...)
	if len(r.Namespaces) > 0 || !r.ClusterScope {
		errs = append(errs, list(r.Namespaces, at.Child("namespaces"),
			"resource rules that are not cluster scoped must supply at least one namespace", "namespaces")...)
	}
	if slices.Contains(r.Namespaces, "*") {
		return errs
	}
	for i, namespace := range r.Namespaces {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(at.Child("namespaces").Index(i), namespace,
				"each member of this list must be '*' or a DNS-1123 label; "+problem))
		}
	}
	return errs
}

var knownVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

// verbs checks those of a rule: "*", or verbs of the API.
func verbs(values []string, at *field.Path) field.ErrorList {
	errs := list(values, at.Child("verbs"), "verbs must contain at least one value", "verbs")
	known := slices.Contains(values, "*") ||
		!slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(knownVerbs, v) })
	if !known {
		errs = append(errs, field.NotSupported(at.Child("verbs"), values, knownVerbs))
	}
	return errs
}

// urlProblem is what is wrong with a rule's path; "" if nothing is.
func urlProblem(url string) string {
	star := strings.IndexByte(url, '*')
	switch {
	case url == "*":
		return ""
	case url == "":
		return "must not be empty"
	case !strings.HasPrefix(url, "/"):
		return "must start with slash"
	case strings.ContainsAny(url, " \t\r\n"):
		return "must not contain white-space"
	case strings.Contains(url, "//"):
		return "must not contain double slash"
	case star >= 0 && (star != len(url)-1 || !strings.HasSuffix(url, "/*")):
		return "wildcard can only do suffix matching"
	}
	return ""
}

// list checks that a rule's list is not empty (the error is required), and that
// "*" is alone in it (others names what else there is).
func list(values []string, at *field.Path, required, others string) field.ErrorList {
	switch {
	case len(values) == 0:
		return field.ErrorList{field.Required(at, required)}
	case len(values) > 1 && slices.Contains(values, "*"):
		return field.ErrorList{field.Invalid(at, values, "if '*' is present, must not specify other "+others)}
	}
	return nil
}

func validateSubject(s *flowcontrolv1.Subject, at *field.Path) field.ErrorList {
	parts := []struct {
		kind     flowcontrolv1.SubjectKind
		name     string
		set      bool
		validate func(at *field.Path) field.ErrorList
	}{
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", s.ServiceAccount != nil,
			func(at *field.Path) field.ErrorList { return validateAccount(s.ServiceAccount, at) }},
		{flowcontrolv1.SubjectKindUser, "user", s.User != nil, func(at *field.Path) field.ErrorList { return named(s.User.Name, at) }},
		{flowcontrolv1.SubjectKindGroup, "group", s.Group != nil, func(at *field.Path) field.ErrorList { return named(s.Group.Name, at) }},
	}
	var own, others field.ErrorList
	var kinds []flowcontrolv1.SubjectKind
	for _, p := range parts {
		kinds = append(kinds, p.kind)
		path := at.Child(p.name)
		switch {
		case p.kind == s.Kind && !p.set:
			own = field.ErrorList{field.Required(path, p.name+" is required when subject kind is '"+string(s.Kind)+"'")}
		case p.kind == s.Kind:
			own = p.validate(path)
		case p.set:
			others = append(others, field.Forbidden(path, p.name+" is forbidden when subject kind is not '"+string(p.kind)+"'"))
		}
	}
	if !slices.Contains(kinds, s.Kind) {
		return check.Supported(s.Kind, at.Child("kind"), kinds...)
	}
	return append(own, others...)
}

func named(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	return nil
}

func validateAccount(a *flowcontrolv1.ServiceAccountSubject, at *field.Path) field.ErrorList {
	errs := named(a.Name, at)
	if a.Name != "" && a.Name != "*" {
		errs = append(errs, check.Subdomain(a.Name, at.Child("name"))...)
	}
	if a.Namespace == "" {
		return append(errs, field.Required(at.Child("namespace"), "must specify namespace for service account"))
	}
	return append(errs, check.Label(a.Namespace, at.Child("namespace"))...)
}
