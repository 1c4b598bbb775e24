package authn

import (
	"net/http"

	"kctl/apiserver/internal/request"
)

// Authenticator knows one kind of credential. It returns ok=false without an
// error if the request has no credential of its kind, and an error if it has a
// bad one.
type Authenticator interface {
	Authenticate(r *http.Request) (user *request.User, ok bool, err error)
}
