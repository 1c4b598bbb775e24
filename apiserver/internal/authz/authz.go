package authz

import (
	"context"

	"kctl/apiserver/internal/request"
)

// Decision is one authorizer's answer. The zero value is Deny, so that an
// authorizer that forgets to answer lets no one in.
type Decision int

const (
	Deny Decision = iota
	Allow
	NoOpinion
)

// Attributes are what a decision is about.
type Attributes struct {
	User *request.User
	request.Info
}

// Authorizer takes one decision. The reason is for people; err means that the
// decision could not be based on everything it should be.
type Authorizer interface {
	Authorize(ctx context.Context, a *Attributes) (d Decision, reason string, err error)
}

// Allowed asks for one more right of a user, which counts as missing if that can't be found out.
func Allowed(ctx context.Context, authorizer Authorizer, user *request.User, right request.Info) bool {
	decision, _, err := authorizer.Authorize(ctx, &Attributes{User: user, Info: right})
	return err == nil && decision == Allow
}
