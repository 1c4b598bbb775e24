package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
)

// Options say whose tokens are accepted, and what is read in them.
type Options struct {
	IssuerURL, ClientID string
	CAFile              string // "" for the host's authorities
	UsernameClaim       string
	UsernamePrefix      string // "-" for none, "" for the default
	GroupsClaim         string // "" for no groups
	GroupsPrefix        string
	RequiredClaims      map[string]string
	SigningAlgorithms   []string
	Audiences           []string // what its tokens are good for: the API
	Clock               clock.PassiveClock
}

// How long a question to the issuer may take, and how soon after one that
// failed it is asked again: tokens of strangers must not make us a hammer.
const (
	askTimeout = 10 * time.Second
	askAgain   = 10 * time.Second
)

// Authenticator checks ID tokens. It is an authn.TokenAuthenticator.
type Authenticator struct {
	options Options
	client  *http.Client

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until the issuer has been found
	failed   error
	failedAt time.Time
}

// New returns an Authenticator. It does not ask the issuer yet, which may be a
// program of this very cluster.
func New(o Options) (*Authenticator, error) {
	client, err := newClient(o.CAFile)
	if err != nil {
		return nil, err
	}
	if o.UsernamePrefix == "" && o.UsernameClaim != emailClaim {
		o.UsernamePrefix = o.IssuerURL + "#"
	}
	if o.UsernamePrefix == "-" {
		o.UsernamePrefix = ""
	}
	return &Authenticator{options: o, client: client}, nil
}

// AuthenticateToken implements authn.TokenAuthenticator. Tokens of other
// issuers are not its business.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	if issuerOf(token) != a.options.IssuerURL {
		return nil, nil, false, nil
	}
	verifier, err := a.find(ctx)
	if err != nil {
		return nil, nil, false, fmt.Errorf("oidc: issuer %s: %w", a.options.IssuerURL, err)
	}
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, nil, false, fmt.Errorf("oidc: %w", err)
	}
	var claims claims
	if err := verified.Claims(&claims); err != nil {
		return nil, nil, false, fmt.Errorf("oidc: read the token's claims: %w", err)
	}
	user, err := a.options.userOf(claims)
	if err != nil {
		return nil, nil, false, fmt.Errorf("oidc: %w", err)
	}
	audiences, err := authn.ForAPI(a.options.Audiences, wanted)
	if err != nil {
		return nil, nil, false, err
	}
	return user, audiences, true, nil
}

// issuerOf looks at a token's issuer without believing anything else of it.
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
	return c.Issuer
}

var errAskedLately = errors.New("it could not be asked a moment ago")

// find reads the issuer's discovery document once. What it learns outlives the
// request that made it ask, and so does the question.
func (a *Authenticator) find(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.verifier != nil {
		return a.verifier, nil
	}
	now := a.options.Clock.Now()
	if a.failed != nil && now.Sub(a.failedAt) < askAgain {
		return nil, errors.Join(errAskedLately, a.failed)
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), a.client), a.options.IssuerURL)
	if err != nil {
		a.failed, a.failedAt = err, now
		return nil, err
	}
	a.verifier = provider.Verifier(&oidc.Config{
		ClientID: a.options.ClientID, SupportedSigningAlgs: a.options.SigningAlgorithms, Now: a.options.Clock.Now,
	})
	return a.verifier, nil
}
