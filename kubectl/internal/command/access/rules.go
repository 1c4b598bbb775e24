package access

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// uncovered are the single permissions of rules that others don't give: of one
// verb, and of one resource, name or address.
func uncovered(by, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var missing []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, single := range singles(rule) {
			if !slices.ContainsFunc(by, func(one rbacv1.PolicyRule) bool { return covers(one, single) }) {
				missing = append(missing, single)
			}
		}
	}
	return missing
}

// singles takes a rule apart.
func singles(rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				one := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
				for _, name := range rule.ResourceNames {
					named := one
					named.ResourceNames = []string{name}
					all = append(all, named)
				}
				if len(rule.ResourceNames) == 0 {
					all = append(all, one)
				}
			}
		}
	}
	for _, address := range rule.NonResourceURLs {
		for _, verb := range rule.Verbs {
			all = append(all, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{address}})
		}
	}
	return all
}

// covers tells whether a rule gives a single permission (Kubernetes docs, "Using
// RBAC Authorization": "*" stands for all, "*/SUBRESOURCE" for one of all
// resources, and no names for all names).
func covers(rule, single rbacv1.PolicyRule) bool {
	has := func(all, one []string) bool {
		return len(one) == 0 || slices.Contains(all, "*") || slices.Contains(all, one[0])
	}
	if !has(rule.Verbs, single.Verbs) {
		return false
	}
	if len(single.NonResourceURLs) > 0 {
		return slices.ContainsFunc(rule.NonResourceURLs, func(address string) bool {
			prefix, open := strings.CutSuffix(address, "*")
			return address == single.NonResourceURLs[0] || open && strings.HasPrefix(single.NonResourceURLs[0], prefix)
		})
	}
	resources := has(rule.Resources, single.Resources)
	if _, sub, ok := strings.Cut(single.Resources[0], "/"); ok {
		resources = resources || slices.Contains(rule.Resources, "*/"+sub)
	}
	names := len(rule.ResourceNames) == 0 || len(single.ResourceNames) > 0 && slices.Contains(rule.ResourceNames, single.ResourceNames[0])
	return resources && names && has(rule.APIGroups, single.APIGroups)
}

// aggregated are the selectors by which a role is put together from others, and
// whether they are other than those that are there.
func aggregated(have, want *rbacv1.AggregationRule, remove bool) ([]metav1.LabelSelector, bool) {
	if want == nil {
		return nil, false
	}
	var all []metav1.LabelSelector
	if have != nil {
		all = have.ClusterRoleSelectors
	}
	missing := without(want.ClusterRoleSelectors, all)
	if remove && len(without(all, want.ClusterRoleSelectors)) > 0 {
		return want.ClusterRoleSelectors, true
	}
	return slices.Concat(all, missing), len(missing) > 0
}

// without are those of all that are not among others.
func without[T any](all, others []T) []T {
	var left []T
	for _, one := range all {
		if !slices.ContainsFunc(others, func(other T) bool { return reflect.DeepEqual(one, other) }) {
			left = append(left, one)
		}
	}
	return left
}

// set puts a list into an object, if it has changed.
func set[T any](object *unstructured.Unstructured, changed bool, list []T, path ...string) error {
	if !changed {
		return nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encoding the %s: %w", path[len(path)-1], err)
	}
	content := []any{}
	if err := json.Unmarshal(text, &content); err != nil {
		return fmt.Errorf("encoding the %s: %w", path[len(path)-1], err)
	}
	return unstructured.SetNestedSlice(object.Object, content, path...)
}
