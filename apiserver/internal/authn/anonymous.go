package authn

import (
	"net/http"
	"slices"
	"sync/atomic"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Anonymous lets in as system:anonymous who shows no credential, where its rule
// lets anybody in.
type Anonymous struct {
	Next Authenticator

	rule atomic.Pointer[AnonymousRule]
}

// AnonymousRule says what may be asked for without a credential: nothing,
// everything, or, where there are paths, these.
type AnonymousRule struct {
	Enabled bool
	Paths   []string
}

// Put makes rule what is in force from now on; without any nobody is let in.
func (a *Anonymous) Put(rule AnonymousRule) { a.rule.Store(&rule) }

// Authenticate implements Authenticator. A credential that is bad stays an
// error.
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
