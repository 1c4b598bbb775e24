package authz

import (
	"context"
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Union asks authorizers in order.
type Union []Authorizer

// Authorize implements Authorizer. Reasons and errors of authorizers without an
// opinion are kept for the case that none has one.
func (u Union) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	var reasons []string
	var failures []error
	for _, authorizer := range u {
		decision, reason, err := authorizer.Authorize(ctx, a)
		if decision != NoOpinion {
			return decision, reason, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	return NoOpinion, strings.Join(reasons, "\n"), errors.Join(failures...)
}

// Named adds the authorizer's name to its reason for having no opinion: users
// have to know from which of several to request the right.
type Named struct {
	Name string
	Authorizer
}

// Authorize implements Authorizer.
func (n Named) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	decision, reason, err := n.Authorizer.Authorize(ctx, a)
	if decision == NoOpinion && reason != "" {
		reason = n.Name + ": " + reason
	}
	return decision, reason, err
}

// RulesFor implements RuleResolver, if the authorizer does.
func (n Named) RulesFor(ctx context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	if resolver, ok := n.Authorizer.(RuleResolver); ok {
		return resolver.RulesFor(ctx, user, namespace)
	}
	return nil, nil
}

// Always gives everyone the same answer: --authorization-mode=AlwaysAllow and
// AlwaysDeny.
type Always Decision

// Authorize implements Authorizer.
func (a Always) Authorize(context.Context, *Attributes) (Decision, string, error) {
	if Decision(a) == Allow {
		return Allow, "", nil
	}
	return NoOpinion, "Everything is forbidden.", nil
}

// Masters allows everything to the group system:masters, whatever the mode, so
// that a cluster with broken rules can be repaired.
type Masters struct{}

// Authorize implements Authorizer.
func (Masters) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if IsMaster(a.User) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

// IsMaster reports whether user is in system:masters.
func IsMaster(user *request.User) bool {
	return user != nil && slices.Contains(user.Groups, core.GroupMasters)
}
