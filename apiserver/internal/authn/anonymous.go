package authn

import (
	"net/http"
	"slices"
	"sync/atomic"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Anonymous authenticates requests without a credential as system:anonymous, if
// its rule allows them.
type Anonymous struct {
	Next Authenticator

	rule atomic.Pointer[AnonymousRule]
}

// AnonymousRule is what may be requested without a credential: nothing,
// everything or, if there are paths, these.
type AnonymousRule struct {
	Enabled bool
	Paths   []string
}

// Put sets the rule in force from now on. Without a rule, no one is let in.
func (a *Anonymous) Put(rule AnonymousRule) { a.rule.Store(&rule) }

// Authenticate implements Authenticator. A bad credential stays an error.
func (a *Anonymous) Authenticate(r *http.Request) (*request.User, bool, error) {
	user, ok, err := a.Next.Authenticate(r)
	if ok || err != nil {
		return user, ok, err
	}
	rule := a.rule.Load()
	if rule == nil || !rule.Enabled || len(rule.Paths) > 0 && !slices.Contains(rule.Paths, r.URL.Path) {
		return nil, false, nil
	}
	return &request.User{Username: core.UserAnonymous, Groups: []string{core.GroupUnauthenticated}}, true, nil
}
