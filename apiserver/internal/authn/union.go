package authn

import (
	"errors"
	"net/http"
	"slices"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Union tries authenticators in order. A failure does not end the search: a
// client may show a certificate of another authority together with a good
// token. The failures count only if no authenticator recognises the client.
type Union []Authenticator

// Authenticate implements Authenticator. Every user it returns is a member of
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
