package authz

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Union asks authorizers in order.
type Union []Authorizer

// Authorize implements Authorizer. Reasons and errors of those who have no
// opinion are kept for the case that nobody has one.
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

// Always gives everybody the same answer: --authorization-mode=AlwaysAllow and
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
// that a cluster whose rules are broken can be mended.
type Masters struct{}

// Authorize implements Authorizer.
func (Masters) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if IsMaster(a.User) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

// IsMaster tells whether user is in system:masters.
func IsMaster(user *request.User) bool {
	return user != nil && slices.Contains(user.Groups, core.GroupMasters)
}
