package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
	"kctl/scheduler/internal/config"
)

// reviewed is an API server that knows one token, and allows admins everything.
type reviewed struct{}

func (reviewed) User(_ context.Context, token string) (authenticationv1.UserInfo, bool, error) {
	switch token {
	case "admin":
		return authenticationv1.UserInfo{Username: "a", Groups: []string{"admins"}}, true, nil
	case "alice":
		return authenticationv1.UserInfo{Username: "alice"}, true, nil
	case "broken":
		return authenticationv1.UserInfo{}, false, errors.New("no answer")
	}
	return authenticationv1.UserInfo{}, false, nil
}

// May allows readers to get what admins may change.
func (reviewed) May(_ context.Context, user authenticationv1.UserInfo, verb, _ string) (bool, error) {
	return slices.Contains(user.Groups, "admins") || verb == "get" && slices.Contains(user.Groups, "readers"), nil
}

func authority(t *testing.T, now time.Time) *pki.Pair {
	t.Helper()
	ca, err := pki.NewCA("test", now.Add(-2*time.Hour), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// connectionOf is a connection that began with a certificate of ca, when that was trusted.
func connectionOf(t *testing.T, ca *pki.Pair, subject pki.Subject, from time.Time, lasts time.Duration) *tls.ConnectionState {
	t.Helper()
	pair, err := ca.Issue(subject, from, lasts)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	above, err := ca.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown.Leaf}, VerifiedChains: [][]*x509.Certificate{{shown.Leaf, above.Leaf}}}
}

func TestStrangersGetHealthOnly(t *testing.T) {
	const here, away, explained, profiles, level = "127.0.0.1:4", "10.1.2.3:4", "/debug/explain", "/debug/pprof/heap", "/debug/flags/v"
	now := testclock.NewFakePassiveClock(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	ca, another := authority(t, now.Now()), authority(t, now.Now())
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := pki.WriteFile(file, ca.Cert); err != nil {
		t.Fatal(err)
	}
	trusted, err := pki.NewAuthorities("test", file, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		method     string // GET if empty
		path, from string
		group      string // of the certificate; none without
		expired    bool   // whether the certificate is
		removed    bool   // whether its authority is not trusted any more
		nameless   bool
		token      string
		want       int
	}{
		"health, from anywhere":               {path: "/healthz", from: away, want: http.StatusOK},
		"one check, from anywhere":            {path: "/readyz/ping", from: away, want: http.StatusOK},
		"version, from anywhere":              {path: "/version", from: away, want: http.StatusOK},
		"metrics, from here":                  {path: "/metrics", from: here, want: http.StatusUnauthorized},
		"metrics, from elsewhere":             {path: "/metrics", from: away, want: http.StatusUnauthorized},
		"metrics, certificate from elsewhere": {path: "/metrics", from: away, group: "any", want: http.StatusOK},
		"metrics, expired certificate":        {path: "/metrics", from: away, group: "any", expired: true, want: http.StatusUnauthorized},
		"metrics, certificate of the past":    {path: "/metrics", from: away, group: "admins", removed: true, want: http.StatusUnauthorized},
		"metrics, certificate of nobody":      {path: "/metrics", from: away, group: "any", nameless: true, want: http.StatusUnauthorized},
		"checks counted, any certificate":     {path: "/metrics/slis", from: away, group: "any", want: http.StatusOK},
		"pods' amounts, any certificate":      {path: "/metrics/resources", from: away, group: "any", want: http.StatusForbidden},
		"pods' amounts, readers":              {path: "/metrics/resources", from: away, group: "readers", want: http.StatusOK},
		"configuration, any certificate":      {path: "/configz", from: away, group: "any", want: http.StatusForbidden},
		"flags, token of somebody":            {path: "/flagz", from: away, token: "alice", want: http.StatusForbidden},
		"status, from elsewhere":              {path: "/statusz", from: away, want: http.StatusUnauthorized},
		"metrics, token":                      {path: "/metrics", from: away, token: "admin", want: http.StatusOK},
		"metrics, token of somebody":          {path: "/metrics", from: away, token: "alice", want: http.StatusForbidden},
		"explain, from here":                  {path: explained, from: here, want: http.StatusUnauthorized},
		"explain, from elsewhere":             {path: explained, from: away, want: http.StatusUnauthorized},
		"explain, certificate of an admin":    {path: explained, from: away, group: "admins", want: http.StatusOK},
		"explain, certificate of a node":      {path: explained, from: here, group: "system:nodes", want: http.StatusForbidden},
		"explain, token of an admin":          {path: explained, from: away, token: "admin", want: http.StatusOK},
		"explain, token of somebody":          {path: explained, from: here, token: "alice", want: http.StatusForbidden},
		"explain, unknown token":              {path: explained, from: here, token: "x", want: http.StatusUnauthorized},
		"explain, nobody to ask":              {path: explained, from: here, token: "broken", want: http.StatusServiceUnavailable},
		"profiles, from here":                 {path: profiles, from: here, want: http.StatusUnauthorized},
		"profiles, token of an admin":         {path: profiles, from: here, token: "admin", want: http.StatusOK},
		"profiles, certificate of a reader":   {path: profiles, from: away, group: "readers", want: http.StatusOK},
		"log level, from here":                {method: "PUT", path: level, from: here, want: http.StatusUnauthorized},
		"log level, certificate of a reader":  {method: "PUT", path: level, from: here, group: "readers", want: http.StatusForbidden},
		"log level, certificate of an admin":  {method: "PUT", path: level, from: away, group: "admins", want: http.StatusOK},
		"what is open, from elsewhere":        {path: "/open/x", from: away, want: http.StatusOK},
		"what begins alike, from elsewhere":   {path: "/opened", from: away, want: http.StatusUnauthorized},
		"what is not there, from elsewhere":   {path: "/other", from: away, want: http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(cmp.Or(test.method, http.MethodGet), "https://scheduler"+test.path, nil)
		r.RemoteAddr = test.from
		r.TLS = &tls.ConnectionState{}
		if test.group != "" {
			issuer := ca
			if test.removed {
				issuer = another
			}
			subject, lasts := pki.Subject{CommonName: "someone", Organization: []string{test.group}, Client: true}, 2*time.Hour
			if test.expired {
				lasts = time.Hour - time.Second
			}
			if test.nameless {
				subject.CommonName = ""
			}
			r.TLS = connectionOf(t, issuer, subject, now.Now().Add(-time.Hour), lasts)
		}
		if test.token != "" {
			r.Header.Set("Authorization", "Bearer "+test.token)
		}
		w := httptest.NewRecorder()
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		(&authFilter{next: next, reviews: reviewed{}, public: append(config.NewOptions().AlwaysAllowPaths, "/open/*"), clients: trusted, clock: now}).ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s: %d, want %d", name, w.Code, test.want)
		}
	}
}
