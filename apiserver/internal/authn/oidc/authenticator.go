package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/status"
)

// Options say whose tokens are accepted, and what is read from them.
type Options struct {
	IssuerURL    string
	DiscoveryURL string   // "" for the usual place below the issuer's
	Clients      []string // a token must be for one of them
	Authorities  []byte   // PEM; empty for the host's
	// UserOf reads the user from verified claims; if nil, the next fields say how.
	UserOf            func(ctx context.Context, claims map[string]json.RawMessage) (*request.User, error)
	UsernameClaim     string
	UsernamePrefix    string // "-" for none, "" for the default
	GroupsClaim       string // "" for no groups
	GroupsPrefix      string
	RequiredClaims    map[string]string
	SigningAlgorithms []string
	Audiences         []string // what its tokens are valid for: the API
	Clock             clock.PassiveClock
	Metrics           *Metrics // nil for none
}

// How long a request to the issuer may take, and how soon after a failure the
// next one may follow: tokens from unauthenticated clients must not make this
// server flood the issuer.
const (
	requestTimeout = 10 * time.Second
	retryInterval  = 10 * time.Second
)

// Authenticator checks ID tokens. It is an authn.TokenAuthenticator. It is safe
// for concurrent use.
type Authenticator struct {
	options Options
	client  *http.Client

	mu        sync.Mutex
	verifier  *oidc.IDTokenVerifier // nil until the issuer has been found
	lastError error
	failedAt  time.Time
	// discovered is closed when the request to the issuer that is under way has ended; nil if none is.
	discovered chan struct{}
}

// New returns an Authenticator. It does not contact the issuer yet, which may
// run in this very cluster.
func New(o Options) (*Authenticator, error) {
	client, err := newClient(&o)
	if err != nil {
		return nil, err
	}
	if o.UserOf == nil {
		o.UserOf = o.withFlagDefaults().userOf
	}
	return &Authenticator{options: o, client: client}, nil
}

// Issuer is the address of the issuer.
func (a *Authenticator) Issuer() string { return a.options.IssuerURL }

// withFlagDefaults returns the options with the defaults of the flags.
func (o Options) withFlagDefaults() *Options {
	if o.UsernamePrefix == "" && o.UsernameClaim != authn.ClaimEmail {
		o.UsernamePrefix = o.IssuerURL + "#"
	}
	if o.UsernamePrefix == "-" {
		o.UsernamePrefix = ""
	}
	return &o
}

// mostAhead is how far an issuer's clock may be ahead of the server's where tokens say
// from when on they are valid: upstream's minute. The library allows five.
const mostAhead = time.Minute

// AuthenticateToken implements authn.TokenAuthenticator. For tokens of other
// issuers, ok is false.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	if issuerOf(token) != a.options.IssuerURL {
		return nil, nil, false, nil
	}
	began := a.options.Clock.Now()
	user, audiences, err := a.check(ctx, token, wanted)
	if err != nil {
		err = shortened(err)
	}
	a.options.Metrics.observeCheck(a.options.IssuerURL, a.options.Clock.Since(began), err)
	return user, audiences, err == nil, err
}

// check finds out whose a token of the issuer is.
func (a *Authenticator) check(ctx context.Context, token string, wanted []string) (*request.User, []string, error) {
	verifier, err := a.discoverVerifier(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("oidc: issuer %s: %w", a.options.IssuerURL, err)
	}
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, nil, fmt.Errorf("oidc: %w", err)
	}
	if !slices.ContainsFunc(a.options.Clients, func(c string) bool { return slices.Contains(verified.Audience, c) }) {
		return nil, nil, fmt.Errorf("oidc: expected audience in %q got %q", a.options.Clients, verified.Audience)
	}
	var claims claims
	if err := verified.Claims(&claims); err != nil {
		return nil, nil, fmt.Errorf("oidc: read the token's claims: %w", err)
	}
	if from, ok := claims.time("nbf"); ok && from.After(a.options.Clock.Now().Add(mostAhead)) {
		return nil, nil, fmt.Errorf("oidc: the token is not valid before %v", from)
	}
	user, err := a.options.UserOf(ctx, claims)
	if err != nil {
		return nil, nil, fmt.Errorf("oidc: %w", err)
	}
	audiences, err := authn.ForAPI(a.options.Audiences, wanted)
	if err != nil {
		return nil, nil, err
	}
	return user, audiences, nil
}

// Google's tokens may name their issuer without the scheme (OpenID Connect Core 1.0,
// section 15.6.2).
const google = "accounts.google.com"

// issuerOf reads a token's issuer without trusting anything else in it.
func issuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &c); err != nil {
		return ""
	}
	if c.Issuer == google {
		return "https://" + google
	}
	return c.Issuer
}

// Discover fetches the issuer's discovery document, unless it is known.
func (a *Authenticator) Discover(ctx context.Context) error {
	if _, err := a.discoverVerifier(ctx); err != nil {
		return fmt.Errorf("oidc: issuer %s: %w", a.options.IssuerURL, shortened(err))
	}
	return nil
}

// shortened cuts an error, which has all that the issuer answered in it.
func shortened(err error) error { return errors.New(status.Shorten(err.Error())) }

var errRecentlyFailed = errors.New("the last request failed a moment ago")

// discoverVerifier reads the issuer's discovery document once. The request to the issuer,
// and its result, outlive the API requests that wait for it; it ends with the client's timeout.
func (a *Authenticator) discoverVerifier(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	a.mu.Lock()
	if a.verifier != nil {
		defer a.mu.Unlock()
		return a.verifier, nil
	}
	if a.lastError != nil && a.options.Clock.Since(a.failedAt) < retryInterval {
		defer a.mu.Unlock()
		return nil, errors.Join(errRecentlyFailed, a.lastError)
	}
	if a.discovered == nil {
		a.discovered = make(chan struct{})
		go a.discover(context.WithoutCancel(ctx))
	}
	discovered := a.discovered
	a.mu.Unlock()
	select {
	case <-discovered:
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.verifier, a.lastError
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// discover asks the issuer, and tells those who wait.
func (a *Authenticator) discover(ctx context.Context) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, a.client), a.options.IssuerURL)
	a.mu.Lock()
	defer a.mu.Unlock()
	// The time after the request: one that was never answered took as long as the
	// interval, and the next token would have it sent again at once.
	if a.lastError, a.failedAt = err, a.options.Clock.Now(); err == nil {
		a.verifier = provider.Verifier(&oidc.Config{
			SkipClientIDCheck: true, SupportedSigningAlgs: a.options.SigningAlgorithms, Now: a.options.Clock.Now,
		})
	}
	close(a.discovered)
	a.discovered = nil
}
