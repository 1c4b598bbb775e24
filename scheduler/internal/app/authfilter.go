package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// authFilter keeps everything but health checks and the version from strangers, on
// this machine, too: pods in its network are there as well. Metrics are for callers
// with a certificate of the client CA. What is neither health nor metrics shows all
// pods and nodes: for that, they need the API server's authorization. A caller with
// a token needs it for everything.
type authFilter struct {
	next    http.Handler
	reviews reviewer
	public  []string         // config.Options.AlwaysAllowPaths
	clients *pki.Authorities // whose certificates clients need; nil for none
	clock   clock.PassiveClock
}

// reviewer asks the API server who owns a token and what users may do.
type reviewer interface {
	User(ctx context.Context, token string) (user authenticationv1.UserInfo, known bool, err error)
	May(ctx context.Context, user authenticationv1.UserInfo, verb, path string) (bool, error)
}

func (f *authFilter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.isPublic(r.URL.Path) {
		f.next.ServeHTTP(w, r)
		return
	}
	debug := r.URL.Path != "/metrics" && r.URL.Path != "/metrics/slis"
	token, hasToken := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case len(r.TLS.VerifiedChains) > 0:
		shown := f.clients.Client(r.TLS, f.clock.Now())
		if shown == nil || shown.Subject.CommonName == "" {
			http.Error(w, "the client certificate has expired, is not signed by a trusted authority, or has no user name", http.StatusUnauthorized)
			return
		}
		user := certificateUser(shown)
		daemon.OwnConnection(r.Context(), user.Username)
		if debug && !f.may(w, r, user) {
			return
		}
	case hasToken:
		user, known, err := f.reviews.User(r.Context(), token)
		if err != nil {
			http.Error(w, "authentication failed: the API server could not be asked, or refused the scheduler's tokenreview", http.StatusServiceUnavailable)
			return
		}
		if !known {
			http.Error(w, "the API server does not know that token", http.StatusUnauthorized)
			return
		}
		daemon.OwnConnection(r.Context(), user.Username)
		if !f.may(w, r, user) {
			return
		}
	default:
		http.Error(w, "a client certificate of the --client-ca-file, or a token, is needed", http.StatusUnauthorized)
		return
	}
	f.next.ServeHTTP(w, r)
}

// isPublic reports whether anybody may ask for a path.
func (f *authFilter) isPublic(path string) bool {
	return slices.ContainsFunc(f.public, func(public string) bool {
		prefix, all := strings.CutSuffix(public, "*")
		return path == public || all && strings.HasPrefix(path, prefix)
	})
}

// may answers the request itself if the user may not use the path.
func (f *authFilter) may(w http.ResponseWriter, r *http.Request, user authenticationv1.UserInfo) bool {
	verb := strings.ToLower(r.Method)
	allowed, err := f.reviews.May(r.Context(), user, verb, r.URL.Path)
	switch {
	case err != nil:
		http.Error(w, "authorization failed: the API server could not be asked, or refused the scheduler's subjectaccessreview", http.StatusServiceUnavailable)
	case !allowed:
		http.Error(w, fmt.Sprintf("user %q may not %s %s", user.Username, verb, r.URL.Path), http.StatusForbidden)
	}
	return allowed && err == nil
}

// certificateUser is the user that a client certificate names, by the API server's rules.
func certificateUser(certificate *x509.Certificate) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: certificate.Subject.CommonName,
		Groups:   append([]string{"system:authenticated"}, certificate.Subject.Organization...),
	}
}

// reviews asks by TokenReviews and SubjectAccessReviews.
type reviews struct{ tokens, access *rest.Client }

// User implements reviewer.
func (v reviews) User(ctx context.Context, token string) (authenticationv1.UserInfo, bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review.SetGroupVersionKind(core.TokenReviews.GVK())
	answer := &authenticationv1.TokenReview{}
	err := v.tokens.Resource(core.TokenReviews, "").Create(ctx, review, answer)
	return answer.Status.User, answer.Status.Authenticated, err
}

// May implements reviewer.
func (v reviews) May(ctx context.Context, user authenticationv1.UserInfo, verb, path string) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}
	review.SetGroupVersionKind(core.AccessReviews.GVK())
	answer := &authorizationv1.SubjectAccessReview{}
	err := v.access.Resource(core.AccessReviews, "").Create(ctx, review, answer)
	return answer.Status.Allowed, err
}
