// Package escalation keeps users from granting rights they don't have: to write
// a role takes every right in it or the right to "escalate", and to write a
// binding takes every right in its role or the right to "bind" it (Kubernetes
// docs, "Privilege escalation prevention").
//
// It is at the end of the mutating half of the admission chain and can't be switched off:
// a user who may not grant something is told so, whatever else is wrong with the object,
// as in upstream. The server's own loops, which act for no user, are exempt.
package escalation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/auth/rbac/validation"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Plugin is the check. Authorizer decides whether a user may escalate or bind.
type Plugin struct {
	admission.OnWrites
	Rules      *rbac.Authorizer
	Authorizer authz.Authorizer
}

// Admit implements admission.Mutator. It changes nothing.
func (p Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	if a.Resource.Group != core.Roles.Group || a.User == nil || authz.IsMaster(a.User) {
		return nil
	}
	if a.ChangesOnlyGarbageFields() {
		return nil
	}
	switch obj := a.Object.(type) {
	case *rbacv1.Role:
		return p.checkRole(ctx, a, obj.Rules)
	case *rbacv1.ClusterRole:
		return p.checkClusterRole(ctx, a, obj)
	case *rbacv1.RoleBinding:
		return p.checkBinding(ctx, a, obj.RoleRef, a.Namespace)
	case *rbacv1.ClusterRoleBinding:
		return p.checkBinding(ctx, a, obj.RoleRef, "")
	}
	return nil
}

// allRules are the rules that a role that aggregates others may get.
var allRules = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func (p Plugin) checkClusterRole(ctx context.Context, a *admission.Attributes, role *rbacv1.ClusterRole) error {
	if err := p.checkRole(ctx, a, role.Rules); err != nil {
		return err
	}
	old, _ := a.OldObject.(*rbacv1.ClusterRole)
	if role.AggregationRule == nil && (old == nil || old.AggregationRule == nil) {
		return nil
	}
	if err := p.checkRole(ctx, a, allRules); err != nil {
		return apierrors.NewForbidden(a.Resource.GVR().GroupResource(), a.Name,
			errors.New("must have cluster-admin privileges to use the aggregationRule"))
	}
	return nil
}

func (p Plugin) checkRole(ctx context.Context, a *admission.Attributes, rules []rbacv1.PolicyRule) error {
	if p.isAllowed(ctx, a, "escalate", a.Resource.Name, a.Name) {
		return nil
	}
	return p.checkCovered(ctx, a, rules)
}

func (p Plugin) checkBinding(ctx context.Context, a *admission.Attributes, ref rbacv1.RoleRef, namespace string) error {
	resource := core.ClusterRoles.Name
	if ref.Kind == "Role" {
		resource = core.Roles.Name
	}
	if p.isAllowed(ctx, a, "bind", resource, ref.Name) {
		return nil
	}
	rules, ok := p.Rules.RulesOf(ref, namespace)
	if !ok {
		return apierrors.NewNotFound(a.Resource.GVR().GroupResource(), ref.Name)
	}
	return p.checkCovered(ctx, a, rules)
}

func (p Plugin) isAllowed(ctx context.Context, a *admission.Attributes, verb, resource, name string) bool {
	return authz.Allowed(ctx, p.Authorizer, a.User, request.Info{
		Resource: true, Verb: verb, APIGroup: core.Roles.Group, APIVersion: core.Roles.Version,
		Namespace: a.Namespace, ResourceName: resource, Name: name,
	})
}

// maxComparisons limits a check to about a second. The combinations in a rule
// of 3 MB may not fit into memory.
const maxComparisons = 20_000_000

// comparisons estimates the cost of checking the rules: each of their
// combinations is compared with all permissions of the user.
func comparisons(owned, rules []rbacv1.PolicyRule) float64 {
	combinations, have := 0.0, 200.0 // even for a user without permissions, a combination costs something
	for _, r := range rules {
		ofResources := float64(len(r.APIGroups)) * float64(len(r.Resources)) * float64(max(1, len(r.ResourceNames)))
		combinations += float64(len(r.Verbs)) * (ofResources + float64(len(r.NonResourceURLs)))
	}
	for _, r := range owned {
		have += float64(len(r.Verbs) + len(r.APIGroups) + len(r.Resources) + len(r.ResourceNames) + len(r.NonResourceURLs))
	}
	return combinations * have
}

func (p Plugin) checkCovered(ctx context.Context, a *admission.Attributes, rules []rbacv1.PolicyRule) error {
	owned, err := p.Rules.RulesFor(ctx, a.User, a.Namespace)
	var dangling rbac.DanglingRolesError
	if err != nil && !errors.As(err, &dangling) {
		return fmt.Errorf("find the rules of user %q: %w", a.User.Username, err)
	}
	if comparisons(owned, rules) > maxComparisons {
		return apierrors.NewForbidden(a.Resource.GVR().GroupResource(), a.Name,
			fmt.Errorf("user %q may grant these rules only by the right to escalate or bind: there are too many combinations of verbs, groups, "+
				"resources and names in them to be checked", a.User.Username))
	}
	covered, atoms := validation.Covers(owned, rules)
	if covered {
		return nil
	}
	missing := rbac.Compact(atoms)
	lines := make([]string, 0, len(missing))
	for _, rule := range missing {
		lines = append(lines, describe(rule))
	}
	slices.Sort(lines)
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		a.User.Username, a.User.Groups, strings.Join(lines, "\n"))
	if len(dangling) > 0 {
		text += "; resolution errors: [" + dangling.Stored() + "]"
	}
	return apierrors.NewForbidden(a.Resource.GVR().GroupResource(), a.Name, errors.New(text))
}

func describe(r rbacv1.PolicyRule) string {
	var parts []string
	add := func(name string, values []string) {
		if len(values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", name, values))
		}
	}
	add("APIGroups", r.APIGroups)
	add("Resources", r.Resources)
	add("ResourceNames", r.ResourceNames)
	add("NonResourceURLs", r.NonResourceURLs)
	add("Verbs", r.Verbs)
	return "{" + strings.Join(parts, ", ") + "}"
}
