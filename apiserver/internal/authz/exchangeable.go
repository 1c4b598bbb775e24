package authz

import (
	"context"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/request"
)

// Exchangeable is a union that another one can take the place of while requests
// are decided. Put must have been called once.
type Exchangeable struct{ current atomic.Pointer[Union] }

// Put makes u what decides from now on.
func (e *Exchangeable) Put(u Union) { e.current.Store(&u) }

// Authorize implements Authorizer.
func (e *Exchangeable) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	return e.current.Load().Authorize(ctx, a)
}

// RulesFor implements RuleResolver.
func (e *Exchangeable) RulesFor(ctx context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	var all []rbacv1.PolicyRule
	var failures failed
	for _, authorizer := range *e.current.Load() {
		resolver, ok := authorizer.(RuleResolver)
		if !ok {
			continue
		}
		rules, err := resolver.RulesFor(ctx, user, namespace)
		if err != nil {
			failures = append(failures, err)
		}
		all = append(all, rules...)
	}
	if len(failures) > 0 {
		return all, failures
	}
	return all, nil
}

// failed are the failures of several authorizers, told in one line.
type failed []error

func (f failed) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, ", ")
}

func (f failed) Unwrap() []error { return f }
