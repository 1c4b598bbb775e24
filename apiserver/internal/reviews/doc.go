// Package reviews answers questions about users: whose a token is
// (TokenReview), who the client itself is (SelfSubjectReview), and what a user
// may do (SubjectAccessReview and related kinds). They are created like
// objects, answered at once and never stored.
//
// The server installs it; other programs of the cluster use it to authenticate
// and authorize their clients. It decides nothing itself: authn and authz do.
package reviews
