package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// allows reports whether one rule allows a.
func allows(rule *rbacv1.PolicyRule, a *authz.Attributes) bool {
	if !containsOrAll(rule.Verbs, a.Verb) {
		return false
	}
	if !a.Resource {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return request.PathMatches(pattern, a.Path) })
	}
	return containsOrAll(rule.APIGroups, a.APIGroup) &&
		resourceMatches(rule.Resources, a.ResourceName, a.Subresource) &&
		nameMatches(rule.ResourceNames, a.Name)
}

func containsOrAll(set []string, want string) bool {
	return slices.Contains(set, rbacv1.VerbAll) || slices.Contains(set, want)
}

// resourceMatches understands "pods", "pods/log", "*/log" and "*". A rule for
// pods does not cover their subresources.
func resourceMatches(resources []string, resource, subresource string) bool {
	for _, r := range resources {
		if r == rbacv1.ResourceAll {
			return true
		}
		if subresource == "" {
			if r == resource { // a review may name "pods/log" as a resource
				return true
			}
			continue
		}
		if name, sub, _ := strings.Cut(r, "/"); sub == subresource && (name == resource || name == "*") {
			return true
		}
	}
	return false
}

// nameMatches reports whether a rule covers a name: one without names covers
// all, one with names does not cover requests without a name.
func nameMatches(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}
