package authn

import (
	"errors"
	"net/http"
	"slices"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Union tries authenticators in order. One that fails does not end the search:
// a client may show a certificate of another authority beside a good token.
// Only where nobody knows the client do the failures count.
type Union []Authenticator

// Authenticate implements Authenticator. Everybody it knows is a member of
// system:authenticated.
func (u Union) Authenticate(r *http.Request) (*request.User, bool, error) {
	var failures []error
	for _, a := range u {
		user, ok, err := a.Authenticate(r)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if ok {
			return withGroup(user), true, nil
		}
	}
	return nil, false, errors.Join(failures...)
}

// withGroup adds system:authenticated to a copy, because users are shared.
func withGroup(user *request.User) *request.User {
	if user.Username == core.UserAnonymous ||
		slices.Contains(user.Groups, core.GroupAuthenticated) || slices.Contains(user.Groups, core.GroupUnauthenticated) {
		return user
	}
	with := *user
	with.Groups = append(slices.Clone(user.Groups), core.GroupAuthenticated)
	return &with
}
