// Package reviews answers questions about users: who a token belongs to
// (TokenReview), who the client itself is (SelfSubjectReview), and what
// somebody may do (SubjectAccessReview and its kin). They are created like
// objects, answered at once and never stored.
//
// The server installs it; other programs of the cluster ask by it who calls
// them. It decides nothing itself: authn and authz do.
package reviews
