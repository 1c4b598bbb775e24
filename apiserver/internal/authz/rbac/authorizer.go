package rbac

import (
	"context"
	"fmt"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// Authorizer decides by its present policy. Without one it allows nothing.
type Authorizer struct {
	mu    sync.RWMutex
	index *index
}

// NewAuthorizer returns an Authorizer with an empty policy.
func NewAuthorizer() *Authorizer {
	a := &Authorizer{}
	a.Set(Policy{})
	return a
}

// Set replaces the policy; the objects in it must not change afterwards.
func (a *Authorizer) Set(p Policy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index = newIndex(p)
}

// Authorize implements authz.Authorizer. It never denies, because rules only
// ever add rights.
func (a *Authorizer) Authorize(_ context.Context, attributes *authz.Attributes) (authz.Decision, string, error) {
	if attributes.User == nil {
		return authz.NoOpinion, "", nil
	}
	decision, reason := authz.NoOpinion, ""
	a.mu.RLock()
	defer a.mu.RUnlock()
	a.index.visit(attributes.User, attributes.Namespace, func(b binding, s subject, rule *rbacv1.PolicyRule) bool {
		if !allows(rule, attributes) {
			return true
		}
		decision, reason = authz.Allow, allowReason(b, s)
		return false
	})
	if decision == authz.NoOpinion {
		if missing := a.index.danglingRoles(attributes.User, attributes.Namespace); len(missing) > 0 {
			reason = "RBAC: " + missing.Error()
		}
	}
	return decision, reason, nil
}

func allowReason(b binding, s subject) string {
	kind, name := "ClusterRoleBinding", b.name
	if b.namespace != "" {
		kind, name = "RoleBinding", b.name+"/"+b.namespace
	}
	who := "User"
	if s.group {
		who = "Group"
	}
	return fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", kind, name, b.role.Kind, b.role.Name, who, s.name)
}

// RulesFor implements authz.RuleResolver: all rules that apply to user in
// namespace. If the error is a DanglingRolesError, the rules are complete.
func (a *Authorizer) RulesFor(_ context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	a.mu.RLock()
	defer a.mu.RUnlock()
	a.index.visit(user, namespace, func(_ binding, _ subject, rule *rbacv1.PolicyRule) bool {
		rules = append(rules, *rule)
		return true
	})
	if missing := a.index.danglingRoles(user, namespace); len(missing) > 0 {
		return rules, missing
	}
	return rules, nil
}

// RulesOf returns the rules of the role that a binding in namespace refers to;
// false if there is no such role.
func (a *Authorizer) RulesOf(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.index.rulesOf(binding{namespace: namespace, role: ref})
}
