package access

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mergeAggregation returns the selectors by which a role is aggregated from others, and
// whether they differ from the existing ones.
func mergeAggregation(have, want *rbacv1.AggregationRule, remove bool) ([]metav1.LabelSelector, bool) {
	if want == nil {
		return nil, false
	}
	var all []metav1.LabelSelector
	if have != nil {
		all = have.ClusterRoleSelectors
	}
	missing := subtract(want.ClusterRoleSelectors, all)
	if remove && len(subtract(all, want.ClusterRoleSelectors)) > 0 {
		return want.ClusterRoleSelectors, true
	}
	return slices.Concat(all, missing), len(missing) > 0
}

// subtract returns those of all that are not in others.
func subtract[T any](all, others []T) []T {
	var left []T
	for _, one := range all {
		if !slices.ContainsFunc(others, func(other T) bool { return reflect.DeepEqual(one, other) }) {
			left = append(left, one)
		}
	}
	return left
}

// setList puts a list into an object, if it has changed.
func setList[T any](object *unstructured.Unstructured, changed bool, list []T, path ...string) error {
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
