package match

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"kctl/apiserver/internal/admission"
)

const wildcard = "*"

func ruleMatches(rule *admissionregistrationv1.NamedRuleWithOperations, a *admission.Attributes, t Target) bool {
	return matchesOperation(rule.Operations, a.Operation) &&
		matchesValue(rule.APIGroups, t.Group) && matchesValue(rule.APIVersions, t.Version) &&
		matchesScope(rule.Scope, a) && matchesResource(rule.Resources, t) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

func matchesValue(values []string, value string) bool {
	return slices.Contains(values, wildcard) || slices.Contains(values, value)
}

func matchesOperation(operations []admissionregistrationv1.OperationType, is admission.Operation) bool {
	return slices.Contains(operations, admissionregistrationv1.OperationAll) ||
		slices.Contains(operations, admissionregistrationv1.OperationType(is))
}

func matchesScope(scope *admissionregistrationv1.ScopeType, a *admission.Attributes) bool {
	if scope == nil {
		return true
	}
	switch *scope {
	case admissionregistrationv1.NamespacedScope:
		return a.Resource.Namespaced
	case admissionregistrationv1.ClusterScope:
		return !a.Resource.Namespaced
	}
	return true
}

// matchesResource understands "pods", "pods/log", "pods/*", "*/log", "*" and
// "*/*". A star after the slash means any subresource or none.
func matchesResource(patterns []string, t Target) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		resource, subresource, _ := strings.Cut(pattern, "/")
		return (resource == wildcard || resource == t.Name) && (subresource == wildcard || subresource == t.Subresource)
	})
}

// Exempt are the resources of admission's own configuration: webhooks are never
// called for them, or a webhook could prevent its own removal.
func Exempt(a *admission.Attributes) bool {
	if a.Resource.Group != admissionregistrationv1.GroupName {
		return false
	}
	switch a.Resource.Name {
	case "validatingwebhookconfigurations", "mutatingwebhookconfigurations":
		return true
	}
	return ExemptOfPolicies(a)
}

// ExemptOfPolicies are policies and bindings, and reviews, which are answered
// and not stored: no policy applies to them.
func ExemptOfPolicies(a *admission.Attributes) bool {
	switch a.Resource.Group {
	case admissionregistrationv1.GroupName:
		switch a.Resource.Name {
		case "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings":
			return true
		}
	case authenticationv1.GroupName, authorizationv1.GroupName:
		return true
	}
	return false
}

// NamespaceOf is the namespace that webhooks and policies see: a namespace is
// in itself.
func NamespaceOf(a *admission.Attributes) string {
	if a.Namespace == "" && isNamespace(a.Resource) {
		return a.Name
	}
	return a.Namespace
}
