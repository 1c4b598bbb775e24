package auth

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

// reviewer is an API server that authenticates the token "good" and allows
// alice the node's proxy subresource.
type reviewer struct {
	clock     *testclock.FakePassiveClock
	tokens    int
	questions []authorizationv1.ResourceAttributes
	broken    bool
}

func newReviewer(t *testing.T) (*reviewer, *rest.Client) {
	r := &reviewer{clock: testclock.NewFakePassiveClock(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return r, client
}

func (r *reviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.broken {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	switch request.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		r.tokens++
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(request.Body).Decode(&review)
		if review.Spec.Token == "good" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "alice", Groups: []string{"g"}}}
		}
		_ = json.NewEncoder(w).Encode(review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(request.Body).Decode(&review)
		r.questions = append(r.questions, *review.Spec.ResourceAttributes)
		review.Status.Allowed = review.Spec.User == "alice" && review.Spec.ResourceAttributes.Subresource == "proxy"
		_ = json.NewEncoder(w).Encode(review)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// expires is when the certificates of requestWith expire.
var expires = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// issuer is the authority of requestWith's certificates.
var issuer = sync.OnceValues(func() (*pki.Pair, error) { return pki.NewCA("test", expires.Add(-24*time.Hour), 48*time.Hour) })

// authorities are issuer alone.
func authorities(t *testing.T, clock *testclock.FakePassiveClock) *pki.Authorities {
	t.Helper()
	ca, err := issuer()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := pki.WriteFile(file, ca.Cert); err != nil {
		t.Fatal(err)
	}
	a, err := pki.NewAuthorities("test", file, clock)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func requestWith(t *testing.T, header string, subject *pki.Subject) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/pods", nil)
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	if subject != nil {
		ca, err := issuer()
		if err != nil {
			t.Fatal(err)
		}
		subject.Client = true
		pair, err := ca.Issue(*subject, expires.Add(-24*time.Hour), 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := pair.TLS()
		if err != nil {
			t.Fatal(err)
		}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown.Leaf}}
	}
	return r
}

func TestAuthenticate(t *testing.T) {
	trusted := authorities(t, testclock.NewFakePassiveClock(expires.Add(-time.Hour)))
	all := Authentication{Certificates: trusted, Tokens: true, Anonymous: true}
	robot := &pki.Subject{CommonName: "robot", Organization: []string{"o"}}
	for _, c := range []struct {
		name    string
		accept  Authentication
		header  string
		subject *pki.Subject
		user    string
		groups  []string
	}{
		{"certificate", all, "", robot, "robot", []string{"o", "system:authenticated"}},
		{"certificate before token", all, "Bearer good", robot, "robot", []string{"o", "system:authenticated"}},
		{"certificate of nobody in a group", all, "", &pki.Subject{Organization: []string{"o"}}, "", nil},
		{"token", all, "Bearer good", nil, "alice", []string{"g"}},
		{"token, other case", all, "bearer  good", nil, "alice", []string{"g"}},
		{"bad token is not nobody", all, "Bearer bad", nil, "", nil},
		{"other scheme is not nobody", all, "Basic Z29vZA==", nil, "", nil},
		{"nobody", all, "", nil, "system:anonymous", []string{"system:unauthenticated"}},
		{"nobody is not taken", Authentication{Certificates: trusted, Tokens: true}, "", nil, "", nil},
		{"tokens are not taken", Authentication{Certificates: trusted}, "Bearer good", nil, "", nil},
		{"tokens are not looked at, nobody is taken", Authentication{Anonymous: true}, "Bearer good", nil, "system:anonymous", []string{"system:unauthenticated"}},
		{"certificates are not taken", Authentication{Tokens: true}, "", robot, "", nil},
		{"nothing is taken", Authentication{}, "Bearer good", robot, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, client := newReviewer(t)
			user, err := NewAuthenticator(c.accept, client, r.clock).Authenticate(requestWith(t, c.header, c.subject))
			if c.user == "" {
				if !errors.Is(err, ErrUnauthenticated) {
					t.Errorf("%+v, %v; want unauthenticated", user, err)
				}
				return
			}
			if err != nil || user.Username != c.user || !slices.Equal(user.Groups, c.groups) {
				t.Errorf("%+v, %v; want %s of %v", user, err, c.user, c.groups)
			}
		})
	}
}

// A scraper may have a certificate of its own authority beside a token of ours.
func TestCertificatesOfOthers(t *testing.T) {
	r, client := newReviewer(t)
	other, err := pki.NewCA("other", expires.Add(-24*time.Hour), 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := pki.WriteFile(file, other.Cert); err != nil {
		t.Fatal(err)
	}
	others, err := pki.NewAuthorities("other", file, r.clock)
	if err != nil {
		t.Fatal(err)
	}
	a := NewAuthenticator(Authentication{Certificates: others, Tokens: true, Anonymous: true}, client, r.clock)
	for header, want := range map[string]string{"Bearer good": "alice", "Bearer bad": "", "": ""} {
		user, err := a.Authenticate(requestWith(t, header, &pki.Subject{CommonName: "robot"}))
		if user.Username != want || errors.Is(err, ErrUnauthenticated) == (want != "") {
			t.Errorf("with %q: %q, %v; want %q", header, user.Username, err, want)
		}
	}
}

// A connection may stay open for longer than the certificate is valid with
// which it was opened.
func TestCertificatesExpireOnOpenConnections(t *testing.T) {
	r, client := newReviewer(t)
	a := NewAuthenticator(Authentication{Certificates: authorities(t, r.clock), Tokens: true}, client, r.clock)
	request := requestWith(t, "", &pki.Subject{CommonName: "robot"})
	for at, want := range map[time.Time]error{expires: nil, expires.Add(time.Second): ErrUnauthenticated} {
		r.clock.SetTime(at)
		if _, err := a.Authenticate(request); !errors.Is(err, want) {
			t.Errorf("at %s: %v, want %v", at, err, want)
		}
	}
}

func TestReviewsAreKeptForAWhile(t *testing.T) {
	r, client := newReviewer(t)
	a := NewAuthenticator(Authentication{Tokens: true, CacheTTL: DefaultCacheTTLs.Token}, client, r.clock)
	ask := func(token string, wantErr bool, reviews int) {
		t.Helper()
		if _, err := a.Authenticate(requestWith(t, "Bearer "+token, nil)); (err != nil) != wantErr || r.tokens != reviews {
			t.Errorf("%s: %v after %d reviews, want error %v after %d", token, err, r.tokens, wantErr, reviews)
		}
	}
	ask("good", false, 1)
	ask("good", false, 1)
	ask("bad", true, 2)
	ask("bad", true, 2)
	r.clock.SetTime(r.clock.Now().Add(unauthenticatedTTL))
	ask("bad", true, 3)
	ask("good", false, 3)
	r.broken = true
	ask("good", false, 3)
	r.clock.SetTime(r.clock.Now().Add(DefaultCacheTTLs.Token))
	ask("good", true, 3)
	r.broken = false
	ask("good", false, 4)
}

func TestAuthorize(t *testing.T) {
	r, client := newReviewer(t)
	a := NewAuthorizer("node-1", client, DefaultCacheTTLs, r.clock)
	alice, bob := authenticationv1.UserInfo{Username: "alice"}, authenticationv1.UserInfo{Username: "bob"}
	asked := func(want ...string) {
		t.Helper()
		var got []string
		for _, q := range r.questions {
			if q.Resource != "nodes" || q.Name != "node-1" || q.Version != "v1" {
				t.Errorf("asked for %+v", q)
			}
			got = append(got, q.Verb+" "+q.Subresource)
		}
		if !slices.Equal(got, want) {
			t.Errorf("asked %q, want %q", got, want)
		}
		r.questions = nil
	}
	if err := a.Authorize(t.Context(), alice, http.MethodPost, "/exec/ns/p/c"); err != nil {
		t.Error(err)
	}
	asked("create proxy")
	for _, path := range []string{"/exec/ns/p/c", "/attach/ns/p/c", "/portForward/ns/p"} { // by WebSocket
		if err := a.Authorize(t.Context(), bob, http.MethodGet, path); err == nil || !strings.Contains(err.Error(), "verb=create") {
			t.Errorf("%s: %v", path, err)
		}
	}
	asked("create proxy") // once
	if err := a.Authorize(t.Context(), alice, http.MethodGet, "/pods"); err != nil {
		t.Error(err)
	}
	asked("get pods", "get proxy")
	if err := a.Authorize(t.Context(), alice, http.MethodGet, "/pods"); err != nil {
		t.Error(err)
	}
	asked()
	var denied *Denied
	if err := a.Authorize(t.Context(), bob, http.MethodGet, "/pods"); !errors.As(err, &denied) ||
		err.Error() != "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[pods proxy])" {
		t.Errorf("bob: %v", err)
	}
	if err := a.Authorize(t.Context(), alice, http.MethodGet, "/metrics/resource"); !errors.As(err, &denied) {
		t.Errorf("metrics: %v", err)
	}
	r.questions = nil
	r.clock.SetTime(r.clock.Now().Add(DefaultCacheTTLs.Denied))
	_ = a.Authorize(t.Context(), bob, http.MethodGet, "/stats/summary")
	_ = a.Authorize(t.Context(), alice, http.MethodGet, "/metrics/resource")
	asked("get stats", "get metrics")
	r.broken = true
	if err := a.Authorize(t.Context(), bob, http.MethodDelete, "/elsewhere"); err == nil || errors.As(err, &denied) {
		t.Errorf("with the API away: %v", err)
	}
	if err := AlwaysAllow().Authorize(t.Context(), bob, http.MethodGet, "/pods"); err != nil {
		t.Errorf("always: %v", err)
	}
}

func TestSubresources(t *testing.T) {
	for path, want := range map[string][]string{
		"/stats/summary":          {"stats"},
		"/metrics":                {"metrics"},
		"/metrics/resource":       {"metrics"},
		"/metricsx":               {"proxy"},
		"/logs/x":                 {"log"},
		"/containerLogs/ns/p/c":   {"proxy"},
		"/pods/":                  {"pods", "proxy"},
		"/runningpods":            {"pods", "proxy"},
		"/healthz/syncloop":       {"healthz", "proxy"},
		"/configz":                {"configz", "proxy"},
		"/flagz":                  {"configz"},
		"/statusz":                {"statusz"},
		"//metrics":               {"proxy"},
		"/":                       {"proxy"},
		"/stats/../exec/ns/p/c":   {"stats"}, // no such route
		"/checkpoint/ns/pod/cont": {"checkpoint"},
	} {
		if got := subresourcesOf(path); !slices.Equal(got, want) {
			t.Errorf("%s belongs to %v, want %v", path, got, want)
		}
	}
}
