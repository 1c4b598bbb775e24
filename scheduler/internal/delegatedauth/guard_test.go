package delegatedauth

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// api is what an API server answers to reviews and about the ConfigMap. How it really does is
// seen by TestWhoMayAskTheScheduler of test/twins; this one can fail as it is told to.
type api struct {
	broken    bool
	published *core.ConfigMap // nil for none
	forbidden bool            // whether the scheduler may not read that
	asked     []string        // of whom, or for what
	hold      func()          // if not nil, called before questions about strangers are answered
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case a.broken:
		w.WriteHeader(http.StatusInternalServerError)
	case strings.HasSuffix(path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		if a.hold != nil && review.Spec.Token != "reader" {
			a.hold()
			return
		}
		a.asked = append(a.asked, review.Spec.Token)
		switch review.Spec.Token {
		case "reader":
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "reader"}}
		case "failed":
			review.Status.Error = "an issuer is away"
		}
		_ = json.NewEncoder(w).Encode(review)
	case strings.HasSuffix(path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		spec := review.Spec
		if a.hold != nil && spec.User == core.UserAnonymous {
			a.hold()
			return
		}
		a.asked = append(a.asked, spec.User+" "+spec.NonResourceAttributes.Verb+" "+spec.NonResourceAttributes.Path)
		known := slices.Contains(spec.Groups, core.GroupAuthenticated) || slices.Contains(spec.Groups, core.GroupUnauthenticated)
		review.Status.Allowed = known && spec.User == "reader" && spec.NonResourceAttributes.Verb == "get"
		review.Status.Reason = "because"
		_ = json.NewEncoder(w).Encode(review)
	case a.forbidden:
		w.WriteHeader(http.StatusForbidden)
	case a.published == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		a.asked = append(a.asked, "authorities")
		_ = json.NewEncoder(w).Encode(a.published)
	}
}

// scene is a guard of a scheduler that asks a.
type scene struct {
	t     *testing.T
	api   *api
	clock *testclock.FakeClock
	guard *Guard
}

func newScene(t *testing.T, a *api, change func(o *Options)) *scene {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	if change != nil {
		change(&o)
	}
	s := &scene{t: t, api: a, clock: testclock.NewFakeClock(start)}
	if s.guard, err = New(&o, client, client, s.clock, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	return s
}

func newAuthority(t *testing.T) *pki.Pair {
	t.Helper()
	ca, err := pki.NewCA("test", start.Add(-time.Hour), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func write(t *testing.T, authority *pki.Pair) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := pki.WriteFile(file, authority.Cert); err != nil {
		t.Fatal(err)
	}
	return file
}

// request is one by a client with a certificate of issuer, or with none if that is nil.
func request(t *testing.T, issuer *pki.Pair, name string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "https://scheduler/metrics", nil)
	r.TLS = &tls.ConnectionState{}
	if issuer != nil {
		pair, err := issuer.Issue(pki.Subject{CommonName: name, Client: true}, start.Add(-time.Minute), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := pair.TLS()
		if err != nil {
			t.Fatal(err)
		}
		r.TLS.PeerCertificates = []*x509.Certificate{shown.Leaf}
	}
	return r
}

// answered makes a request and compares the answer's code.
func (s *scene) answered(what string, r *http.Request, want int) *httptest.ResponseRecorder {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).ServeHTTP(w, r)
	if w.Code != want {
		s.t.Errorf("%s: %d %s, want %d", what, w.Code, w.Body, want)
	}
	return w
}

func TestOpenPaths(t *testing.T) {
	s := newScene(t, &api{}, func(o *Options) { o.AlwaysAllowPaths = []string{"/healthz", "version", "/open/*"} })
	for path, want := range map[string]int{
		"/healthz": 200, "/version": 200, "/open/": 200, "/open/x/y": 200,
		"/": 403, "/open": 403, "/opened": 403, "/healthz/ping": 403, "/healthzz": 403, "/versions": 403, "/other": 403, "//healthz/..": 403,
	} {
		r := request(t, nil, "")
		r.URL.Path = path
		s.answered(path, r, want)
	}
}

// What is refused says why as the API's clients read it, and strangers don't keep a connection.
func TestRefusals(t *testing.T) {
	s := newScene(t, &api{}, nil)
	bad := request(t, nil, "")
	bad.Header.Set("Authorization", "Bearer bad")
	for _, test := range []struct {
		r      *http.Request
		method string
		want   metav1.Status
		closed bool
	}{
		{bad, "GET", metav1.Status{Code: 401, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"}, true},
		{request(t, nil, ""), "PUT", metav1.Status{
			Code:    403,
			Reason:  metav1.StatusReasonForbidden,
			Message: `forbidden: User "system:anonymous" cannot put path "/metrics": because`,
		}, true},
	} {
		test.r.ProtoMajor, test.r.Method = 2, test.method
		w := s.answered(test.want.Message, test.r, int(test.want.Code))
		var got metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Kind != "Status" || got.Code != test.want.Code || got.Reason != test.want.Reason ||
			got.Message != test.want.Message {
			t.Errorf("%+v (%v), want %+v", got, err, test.want)
		}
		if closed := w.Header().Get("Connection") == "close"; closed != test.closed {
			t.Errorf("%s: the connection is closed: %v", test.want.Message, closed)
		}
	}
}

// The API server is asked again when its answer is old, when it failed, and when it was unsure.
func TestAnswersAreCached(t *testing.T) {
	s := newScene(t, &api{}, func(o *Options) { o.TokenTTL, o.AllowedTTL, o.DeniedTTL = 4*time.Minute, 2*time.Minute, time.Minute })
	by := func(token, method string) *http.Request {
		r := request(t, nil, "")
		r.Method = cmp.Or(method, http.MethodGet)
		r.Header.Set("Authorization", "Bearer "+token)
		return r
	}
	asked := func(what string, r *http.Request, want int, questions ...string) {
		t.Helper()
		s.answered(what, r, want)
		if !slices.Equal(s.api.asked, questions) {
			t.Errorf("%s: asked %q, want %q", what, s.api.asked, questions)
		}
		s.api.asked = nil
	}
	asked("first", by("reader", ""), 200, "reader", "reader get /metrics")
	asked("again", by("reader", ""), 200)
	asked("what may not be", by("reader", "PUT"), 403, "reader put /metrics")
	asked("what may not be, again", by("reader", "PUT"), 403)
	s.clock.Step(time.Minute)
	asked("denied a minute ago", by("reader", "PUT"), 403, "reader put /metrics")
	asked("allowed a minute ago", by("reader", ""), 200)
	s.clock.Step(time.Minute)
	asked("allowed two minutes ago", by("reader", ""), 200, "reader get /metrics")
	asked("unknown", by("bad", ""), 401, "bad")
	asked("unknown, again", by("bad", ""), 401)
	asked("unsure", by("failed", ""), 401, "failed")
	asked("unsure, again", by("failed", ""), 401, "failed")
	s.api.broken = true
	asked("no answer about the user", by("new", ""), 401)
	asked("no answer about the right", by("reader", "POST"), 500)
	asked("no answer needed", by("reader", ""), 200)
	s.api.broken = false
	asked("an answer at last", by("reader", "POST"), 403, "reader post /metrics")
	s.clock.Step(2 * time.Minute)
	asked("known four minutes ago", by("reader", ""), 200, "reader", "reader get /metrics")
}

// What flags name is not looked up; a client of an authority that has left its file is nobody's.
func TestFlagsComeFirst(t *testing.T) {
	clients, proxies, another := newAuthority(t), newAuthority(t), newAuthority(t)
	file := write(t, clients)
	s := newScene(t, &api{published: published(map[string]string{keyClients: string(another.Cert), keyProxies: string(another.Cert)})}, func(o *Options) {
		o.ClientCAFile, o.ProxyCAFile, o.AllowedNames = file, write(t, proxies), []string{"front"}
	})
	if err := s.guard.LookUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.guard.Run(t.Context()); err != nil || len(s.api.asked) > 0 {
		t.Errorf("asked for %q (%v), though flags name all authorities", s.api.asked, err)
	}
	named := func(issuer *pki.Pair, name string) *http.Request {
		r := request(t, issuer, name)
		r.Header.Set("X-Remote-User", "reader")
		return r
	}
	first := request(t, clients, "reader")
	s.answered("a client", first, 200)
	s.answered("a client of the cluster's", request(t, another, "reader"), 401)
	s.answered("a proxy", named(proxies, "front"), 200)
	s.answered("a proxy with another name", named(proxies, "back"), 401)
	s.answered("a client that names another", named(clients, "other"), 403)
	if err := pki.WriteFile(file, another.Cert); err != nil {
		t.Fatal(err)
	}
	s.clock.Step(time.Minute)
	s.answered("a client of the past", first, 401)
	s.clock.Step(time.Hour)
	s.answered("a proxy whose time is over", named(proxies, "front"), 401)
}

func published(data map[string]string) *core.ConfigMap {
	object := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: core.NamespaceSystem, Name: configMap}, Data: data}
	object.SetGroupVersionKind(core.ConfigMaps.GVK())
	return object
}
