package authn

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
	"kctl/proto/clientauth"
)

// TokenAuthenticator knows one kind of bearer token. It returns ok=false
// without an error if the token is not of its kind. audiences are those of
// wanted (or, if wanted is empty, of the API's own) that the token is for.
type TokenAuthenticator interface {
	AuthenticateToken(ctx context.Context, token string, wanted []string) (user *request.User, audiences []string, ok bool, err error)
}

// Tokens tries token authenticators in order. A failure does not end the
// search, because kinds of token can look alike.
type Tokens []TokenAuthenticator

// AuthenticateToken implements TokenAuthenticator.
func (t Tokens) AuthenticateToken(ctx context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	var failures []error
	for _, a := range t {
		user, audiences, ok, err := a.AuthenticateToken(ctx, token, wanted)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if ok {
			return user, audiences, true, nil
		}
	}
	return nil, nil, false, errors.Join(failures...)
}

// ExchangeableTokens are token authenticators that can be replaced while
// requests are served. Put must have been called once.
type ExchangeableTokens struct{ current atomic.Pointer[Tokens] }

// Put makes t authenticate tokens from now on.
func (e *ExchangeableTokens) Put(t Tokens) { e.current.Store(&t) }

// AuthenticateToken implements TokenAuthenticator.
func (e *ExchangeableTokens) AuthenticateToken(ctx context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	return e.current.Load().AuthenticateToken(ctx, token, wanted)
}

// ForAPI returns the audiences of a token that names none, and so is for the
// API: those of wanted that are the API's, or all of the API's if wanted is
// empty.
func ForAPI(api, wanted []string) ([]string, error) {
	if len(wanted) == 0 {
		return api, nil
	}
	var audiences []string
	for _, audience := range wanted {
		if slices.Contains(api, audience) {
			audiences = append(audiences, audience)
		}
	}
	if len(audiences) == 0 {
		return nil, fmt.Errorf("token is for %q, not for %q", api, wanted)
	}
	return audiences, nil
}

// ErrInvalidToken is the error for tokens that no authenticator recognises.
var ErrInvalidToken = errors.New("invalid bearer token")

// Bearer authenticates requests by the token in their Authorization header.
type Bearer struct{ Tokens TokenAuthenticator }

// Authenticate implements Authenticator.
func (b Bearer) Authenticate(r *http.Request) (*request.User, bool, error) {
	token := clientauth.BearerToken(r.Header)
	if token == "" {
		return nil, false, nil
	}
	return userOf(r.Context(), b.Tokens, token)
}

// userOf returns the user of a token. An unknown one is an error, so that it never falls
// through to anonymous.
func userOf(ctx context.Context, tokens TokenAuthenticator, token string) (*request.User, bool, error) {
	user, _, ok, err := tokens.AuthenticateToken(ctx, token, nil)
	if err == nil && !ok {
		err = ErrInvalidToken
	}
	if err != nil {
		return nil, false, err
	}
	return user, true, nil
}

// cacheSize is how many valid tokens Cached remembers.
const cacheSize = 4096

// Cached remembers successes of a token authenticator for a short while:
// checking a signature costs more than everything else about a small request.
// Failures are not cached, so that a new service account works at once. It is
// safe for concurrent use.
type Cached struct {
	next  TokenAuthenticator
	ttl   time.Duration
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[[sha256.Size]byte]verified
}

type verified struct {
	user      *request.User
	audiences []string
	remarks   []Remark
	until     time.Time
}

// NewCached returns a cache in front of next that remembers for ttl.
func NewCached(next TokenAuthenticator, ttl time.Duration, clock clock.PassiveClock) *Cached {
	return &Cached{next: next, ttl: ttl, clock: clock, entries: map[[sha256.Size]byte]verified{}}
}

// AuthenticateToken implements TokenAuthenticator. The users it returns are
// shared and must not be changed.
func (c *Cached) AuthenticateToken(ctx context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	key := keyOf(token, wanted)
	now := c.clock.Now()
	if e, ok := c.lookup(key, now); ok {
		for _, r := range e.remarks {
			AddRemark(ctx, r)
		}
		return e.user, slices.Clone(e.audiences), true, nil
	}
	var remarks []Remark
	user, audiences, ok, err := c.next.AuthenticateToken(withRemarks(ctx, &remarks), token, wanted)
	if err == nil && ok && c.ttl > 0 {
		c.remember(key, verified{user, audiences, remarks, now.Add(c.ttl)}, now)
	}
	return user, audiences, ok, err
}

// keyOf encodes the whole question unambiguously: clients choose the audiences'
// text, and an empty one is not the same as none.
func keyOf(token string, wanted []string) [sha256.Size]byte {
	question := make([]byte, 0, 64+len(token))
	for _, audience := range wanted {
		question = append(strconv.AppendInt(question, int64(len(audience)), 10), ':')
		question = append(question, audience...)
	}
	return sha256.Sum256(append(append(question, '.'), token...))
}

func (c *Cached) lookup(key [sha256.Size]byte, now time.Time) (verified, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	return e, ok && now.Before(e.until)
}

func (c *Cached) remember(key [sha256.Size]byte, e verified, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= cacheSize {
		c.evict(now)
	}
	c.entries[key] = e
}

// evict makes room: it drops expired entries first and then, if that is not
// enough, any.
func (c *Cached) evict(now time.Time) {
	for key, e := range c.entries {
		if !now.Before(e.until) {
			delete(c.entries, key)
		}
	}
	for key := range c.entries {
		if len(c.entries) < cacheSize {
			return
		}
		delete(c.entries, key)
	}
}
