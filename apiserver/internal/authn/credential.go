package authn

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"kctl/apiserver/internal/request"
	"kctl/proto/clientauth"
)

// Claims of JSON web tokens that mean something whatever a server is configured to read (OpenID Connect
// Core 1.0, sections 5.1 and 5.6.2; RFC 7519, section 4.1.7).
const (
	ClaimEmail         = "email"
	ClaimEmailVerified = "email_verified"
	ClaimNames         = "_claim_names" // of claims that have to be fetched elsewhere
	ClaimID            = "jti"
)

// ExtraNodeName is the extra field of a user that names the node on which the pod runs that a service account's
// token is bound to.
const ExtraNodeName = "authentication.kubernetes.io/node-name"

// CredentialID names the token whose id (its claim jti) it is given.
func CredentialID(id string) string { return "JTI=" + id }

// AddCredentialID adds the name of the user's token, if that has an id.
func AddCredentialID(user *request.User, id string) {
	if id == "" {
		return
	}
	if user.Extra == nil {
		user.Extra = map[string]authenticationv1.ExtraValue{}
	}
	user.Extra[clientauth.ExtraCredentialID] = authenticationv1.ExtraValue{CredentialID(id)}
}
