package authz

import (
	"context"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/request"
)

// Exchangeable is a union that can be replaced while requests are served. Put
// must have been called once.
type Exchangeable struct{ current atomic.Pointer[Union] }

// Put makes u decide from now on.
func (e *Exchangeable) Put(u Union) { e.current.Store(&u) }

// Authorize implements Authorizer.
func (e *Exchangeable) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	return e.current.Load().Authorize(ctx, a)
}

// RulesFor implements RuleResolver.
func (e *Exchangeable) RulesFor(ctx context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	return e.current.Load().RulesFor(ctx, user, namespace)
}
