package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

const wildcard = "*"

var (
	operations = []admissionregistrationv1.OperationType{
		admissionregistrationv1.OperationAll, admissionregistrationv1.Connect, admissionregistrationv1.Create,
		admissionregistrationv1.Delete, admissionregistrationv1.Update,
	}
	scopes = []admissionregistrationv1.ScopeType{admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope,
		admissionregistrationv1.NamespacedScope}
	failurePolicies = []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore}
	matchPolicies   = []admissionregistrationv1.MatchPolicyType{admissionregistrationv1.Equivalent, admissionregistrationv1.Exact}
)

// supportedIfSet checks the value of a field that may be left out.
func supportedIfSet[T ~string](value *T, at *field.Path, values []T) field.ErrorList {
	if value == nil {
		return nil
	}
	return check.SupportedInOrder(*value, at, values...)
}

func validateRule(rule *admissionregistrationv1.RuleWithOperations, at *field.Path) field.ErrorList {
	errs := validateOperations(rule.Operations, at.Child("operations"))
	errs = append(errs, checkWildcardAlone(rule.APIGroups, "API groups", at.Child("apiGroups"))...)
	errs = append(errs, checkWildcardAlone(rule.APIVersions, "API versions", at.Child("apiVersions"))...)
	for i, version := range rule.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(at.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateResources(rule.Resources, at.Child("resources"))...)
	return append(errs, supportedIfSet(rule.Scope, at.Child("scope"), scopes)...)
}

func validateOperations(given []admissionregistrationv1.OperationType, at *field.Path) field.ErrorList {
	errs := checkWildcardAlone(given, "operations", at)
	for i := range given {
		errs = append(errs, check.SupportedInOrder(given[i], at.Index(i), operations...)...)
	}
	return errs
}

// checkWildcardAlone checks that there are values, and no others besides a wildcard.
func checkWildcardAlone[T ~string](values []T, what string, at *field.Path) field.ErrorList {
	switch {
	case len(values) == 0:
		return field.ErrorList{field.Required(at, "")}
	case len(values) > 1 && slices.Contains(values, wildcard):
		return field.ErrorList{field.Invalid(at, values, "if '*' is present, must not specify other "+what)}
	}
	return nil
}

// validateResources checks that no pattern repeats an earlier one.
func validateResources(resources []string, at *field.Path) field.ErrorList {
	if len(resources) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	ofAll := map[string]bool{} // subresources of every resource
	allOf := map[string]bool{} // resources with every subresource
	single := false
	for i, pattern := range resources {
		if pattern == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
			continue
		}
		resource, subresource, found := strings.Cut(pattern, "/")
		if !found {
			single = resource != wildcard // the last one decides, as in upstream
			continue
		}
		if allOf[resource] {
			errs = append(errs, field.Invalid(at.Index(i), pattern, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, pattern)))
		}
		if ofAll[subresource] {
			errs = append(errs, field.Invalid(at.Index(i), pattern, fmt.Sprintf("if '*/%s' is present, must not specify %s", subresource, pattern)))
		}
		allOf[resource] = allOf[resource] || subresource == wildcard
		ofAll[subresource] = ofAll[subresource] || resource == wildcard
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(at, resources, "if '*/*' is present, must not specify other resources"))
	}
	if single && slices.Contains(resources, wildcard) {
		errs = append(errs, field.Invalid(at, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

func validateNamedRules(rules []admissionregistrationv1.NamedRuleWithOperations, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		at := at.Index(i)
		names := map[string]bool{}
		for j, name := range rules[i].ResourceNames {
			at := at.Child("resourceNames").Index(j)
			errs = append(errs, check.Messages(at, name, content.IsPathSegmentName(name))...)
			if names[name] {
				errs = append(errs, field.Duplicate(at, name))
			}
			names[name] = true
		}
		errs = append(errs, validateRule(&rules[i].RuleWithOperations, at)...)
	}
	return errs
}

// validateMatch checks what a policy or a binding selects.
func validateMatch(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	errs := supportedIfSet(m.MatchPolicy, at.Child("matchPolicy"), matchPolicies)
	errs = append(errs, check.LabelSelector(m.NamespaceSelector, at.Child("namespaceSelector"))...)
	errs = append(errs, check.LabelSelector(m.ObjectSelector, at.Child("objectSelector"))...)
	errs = append(errs, validateNamedRules(m.ResourceRules, at.Child("resourceRules"))...)
	return append(errs, validateNamedRules(m.ExcludeResourceRules, at.Child("excludeResourceRules"))...)
}
