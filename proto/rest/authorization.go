package rest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// authorization is what requests say in their Authorization header.
type authorization struct {
	token *tokenSource
	basic string // user name and password, encoded; "" for a token, or for nothing
}

func newAuthorization(cfg *Config, clock clock.PassiveClock) *authorization {
	a := &authorization{token: &tokenSource{static: cfg.BearerToken, file: cfg.BearerTokenFile, clock: clock}}
	if cfg.Username != "" || cfg.Password != "" {
		a.basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password))
	}
	return a
}

// header is the header's value; "" for none.
func (a *authorization) header() (string, error) {
	if a.basic != "" {
		return a.basic, nil
	}
	token, err := a.token.get()
	if err != nil || token == "" {
		return "", err
	}
	return "Bearer " + token, nil
}

// Authorize returns next with the Config's bearer token, or its user name and password,
// added to requests that say nothing of that kind. It is for connections made without the
// Client; TLS presents the client certificate.
func (cfg *Config) Authorize(next http.RoundTripper) http.RoundTripper {
	if cfg.BearerToken+cfg.BearerTokenFile+cfg.Username+cfg.Password == "" {
		return next
	}
	return authorizedTransport{next: next, who: newAuthorization(cfg, clock.RealClock{})}
}

type authorizedTransport struct {
	next http.RoundTripper
	who  *authorization
}

func (t authorizedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	authorization, err := t.who.header()
	if err != nil {
		return nil, err
	}
	if authorization != "" && r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", authorization)
	}
	return t.next.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections behind it.
func (t authorizedTransport) CloseIdleConnections() { closeIdleConnections(t.next) }

func closeIdleConnections(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// tokenSource gives the bearer token, read again from its file every minute so
// that rotated tokens are taken up.
type tokenSource struct {
	static, file string
	clock        clock.PassiveClock

	mu     sync.Mutex
	cached string
	readAt time.Time
}

func (t *tokenSource) get() (string, error) {
	if t.file == "" {
		return t.static, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if t.cached != "" && now.Sub(t.readAt) < time.Minute {
		return t.cached, nil
	}
	data, err := os.ReadFile(t.file)
	if err != nil {
		if t.cached != "" {
			return t.cached, nil
		}
		return "", fmt.Errorf("read bearer token: %w", err)
	}
	t.cached, t.readAt = strings.TrimSpace(string(data)), now
	return t.cached, nil
}
