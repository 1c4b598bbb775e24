package housekeeping

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// aggregationName is the loop's, and its field manager's; upstream's.
const aggregationName = "clusterrole-aggregation-controller"

// clusterRoleAggregation fills cluster roles that collect the rules of others by label.
type clusterRoleAggregation struct {
	roles *informer.Informer[*rbacv1.ClusterRole]
	store registry.Resource
}

func newClusterRoleAggregation(d *Dependencies) (Loop, error) {
	a := &clusterRoleAggregation{}
	var err error
	if a.roles, a.store, err = newInformer(d, core.ClusterRoles, whole[*rbacv1.ClusterRole]); err != nil {
		return nil, err
	}
	w := newWorker(aggregationName, d, several, a.sync)
	a.roles.OnChange(func(informer.Key, **rbacv1.ClusterRole, **rbacv1.ClusterRole) {
		for _, role := range a.roles.List() {
			if role.AggregationRule != nil {
				w.add(informer.Key{Name: role.Name})
			}
		}
	})
	return runTogether(a.roles.Run, afterSync(w.run, a.roles.Synced())), nil
}

func (a *clusterRoleAggregation) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	role, ok := a.roles.Get("", key.Name)
	if !ok || role.AggregationRule == nil {
		return 0, nil
	}
	rules, err := aggregatedRules(role, a.roles.List())
	if err != nil {
		return 0, err
	}
	wanted := len(rules) > 0
	if hasCollected(role) == wanted && (!wanted || equality.Semantic.DeepEqual(role.Rules, rules)) {
		return 0, nil
	}
	return 0, ignoreNotFound(a.collect(ctx, key.Name, rules), "write the collected rules")
}

// collect makes rules those of a role, and the loop their only owner. Without any, the loop
// owns nothing, and those that it wrote go; what a user wrote stays, as in upstream.
func (a *clusterRoleAggregation) collect(ctx context.Context, name string, rules []rbacv1.PolicyRule) error {
	target := registry.Target{Name: name}
	if len(rules) == 0 {
		return registry.Apply(ctx, a.store, target, aggregationName, map[string]any{})
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: rules})
	if err != nil {
		return fmt.Errorf("encode the collected rules: %w", err)
	}
	return registry.ApplyAnew(ctx, a.store, target, aggregationName, map[string]any{"rules": fields["rules"]}, func(current core.Object) {
		current.(*rbacv1.ClusterRole).Rules = nil
	})
}

// hasCollected reports whether the loop owns a role's rules. It does not own those that earlier
// builds of it wrote, which it must take over: rules that it does not own never go.
func hasCollected(role *rbacv1.ClusterRole) bool {
	return slices.ContainsFunc(role.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == aggregationName && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// aggregatedRules are the rules of all other roles that the role's selectors match,
// in the order of the roles' names, without duplicates.
func aggregatedRules(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	slices.SortFunc(all, func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
	var rules []rbacv1.PolicyRule
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		for _, other := range all {
			if other.Name != role.Name && selector.Matches(labels.Set(other.Labels)) {
				rules = withRules(rules, other.Rules)
			}
		}
	}
	return rules, nil
}

// withRules adds the rules of more that are not among rules yet.
func withRules(rules, more []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, rule := range more {
		if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, rule) }) {
			rules = append(rules, rule)
		}
	}
	return rules
}
