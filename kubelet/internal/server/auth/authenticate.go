package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"kctl/proto/backoff"
	"kctl/proto/clientauth"
	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// CacheTTLs are how long the API server's answers are cached.
type CacheTTLs struct {
	Token           time.Duration // that somebody is who they are
	Allowed, Denied time.Duration // that they may do something, or may not
}

// DefaultCacheTTLs are upstream's.
var DefaultCacheTTLs = CacheTTLs{Token: 2 * time.Minute, Allowed: 5 * time.Minute, Denied: 30 * time.Second}

const (
	unauthenticatedTTL = 10 * time.Second
	cacheSize          = 1024
	reviewTimeout      = 10 * time.Second
)

// Authentication says which kinds of credentials are accepted. The zero value
// accepts none, so nobody gets in.
type Authentication struct {
	// Certificates takes client certificates that are these authorities' at the time of the request;
	// nil takes none.
	Certificates *pki.Authorities
	// Tokens takes bearer tokens for which the API server vouches.
	Tokens bool
	// Anonymous lets clients without credentials in, as system:anonymous.
	Anonymous bool
	// CacheTTL is how long the answer about a token is cached.
	CacheTTL time.Duration
}

// Authenticator finds out who makes a request.
type Authenticator struct {
	accept       Authentication
	certificates *clientauth.Verifier[authenticationv1.UserInfo]
	client       *rest.Client
	clock        clock.PassiveClock
	cache        *lru.Cache // of token hashes
}

// tokenAnswer is the API server's answer about a token.
type tokenAnswer struct {
	user          authenticationv1.UserInfo
	authenticated bool
	expires       time.Time
}

// NewAuthenticator returns an Authenticator that lets the API server behind
// client review tokens.
func NewAuthenticator(accept Authentication, client *rest.Client, clock clock.PassiveClock) *Authenticator {
	a := &Authenticator{accept: accept, client: client, clock: clock, cache: lru.New(cacheSize)}
	if accept.Certificates != nil {
		a.certificates = clientauth.NewVerifier(accept.Certificates, clock, clientauth.UserOf)
	}
	return a
}

// ErrUnauthenticated says that a request has no valid credentials.
var ErrUnauthenticated = errors.New("Unauthorized")

// Authenticate returns who makes the request, ErrUnauthenticated, or an error
// if that could not be found out.
func (a *Authenticator) Authenticate(r *http.Request) (authenticationv1.UserInfo, error) {
	var refused error // of a certificate: it does not keep a token from counting, but its owner is not nobody
	if a.certificates != nil {
		var owner *authenticationv1.UserInfo
		if owner, refused = a.certificates.Verify(r); owner != nil {
			user := *owner
			user.Groups = append(slices.Clone(owner.Groups), core.GroupAuthenticated)
			return user, nil
		}
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if a.accept.Tokens && strings.EqualFold(scheme, "bearer") && token != "" {
		return a.reviewed(r.Context(), token)
	}
	if a.accept.Anonymous && refused == nil && (scheme == "" || !a.accept.Tokens) { // upstream's looks at no token without the webhook
		return authenticationv1.UserInfo{Username: core.UserAnonymous, Groups: []string{core.GroupUnauthenticated}}, nil
	}
	return authenticationv1.UserInfo{}, ErrUnauthenticated
}

// reviewed asks the API server about the token, unless it did so lately. The
// token itself is not kept.
func (a *Authenticator) reviewed(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	key := sha256.Sum256([]byte(token))
	if kept, ok := a.cache.Get(key); ok {
		if answer := kept.(tokenAnswer); !backoff.Passed(a.clock.Now(), answer.expires) {
			return answer.result()
		}
	}
	answer, err := a.review(ctx, token)
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("reviewing the request's token: %w", err)
	}
	a.cache.Add(key, answer)
	return answer.result()
}

func (a *Authenticator) review(ctx context.Context, token string) (tokenAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
	if err := a.client.Resource(core.TokenReviews, "").Create(ctx, review, review); err != nil {
		return tokenAnswer{}, err
	}
	answer := tokenAnswer{user: review.Status.User, authenticated: review.Status.Authenticated, expires: a.clock.Now().Add(unauthenticatedTTL)}
	if answer.authenticated {
		answer.expires = a.clock.Now().Add(a.accept.CacheTTL)
	}
	return answer, nil
}

func (t tokenAnswer) result() (authenticationv1.UserInfo, error) {
	if !t.authenticated {
		return authenticationv1.UserInfo{}, ErrUnauthenticated
	}
	return t.user, nil
}
