package authn

import (
	"context"
	"net"
	"net/http"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Itself recognises what the server asks of itself, by the connection: no secret is needed
// that could be found or guessed.
type Itself struct{}

type itselfKey struct{}

// FromItself marks the requests of a connection that begins and ends within the server.
func FromItself(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, itselfKey{}, true)
}

// IsItself reports whether a request with this context is one that the server makes of itself.
func IsItself(ctx context.Context) bool { return ctx.Value(itselfKey{}) != nil }

// Authenticate implements Authenticator.
func (Itself) Authenticate(r *http.Request) (*request.User, bool, error) {
	if !IsItself(r.Context()) {
		return nil, false, nil
	}
	return &request.User{Username: core.UserAPIServer, Groups: []string{core.GroupMasters}}, true, nil
}
