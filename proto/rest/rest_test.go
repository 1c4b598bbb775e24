package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/proto/pki"
)

// serve starts a TLS server that misbehaves as handler says: it is for faults
// only.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := New(&Config{Host: server.URL, Insecure: true, BearerToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// A pod may name what it wants, and must not have a request made for something else.
func TestNamesAreNoPaths(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	for _, name := range []string{"../../other/secrets/s", "m/status", "m/", "..", ".", "%2e%2e"} {
		err := c.Resource(core.ConfigMaps, "shop").Get(t.Context(), name, &core.ConfigMap{})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("configmaps: invalid resource name %q: may not ", name)) {
			t.Errorf("of %q: %v", name, err)
		}
	}
}

func TestRequests(t *testing.T) {
	var got *http.Request
	var body []byte
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode(&core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	})
	pods := c.Resource(core.Pods, "shop")
	binding := &core.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	var pod core.Pod
	for _, tc := range []struct {
		name              string
		do                func() error
		method, path      string
		contentType, body string
	}{
		{"get", func() error { return pods.Get(t.Context(), "web", &pod) }, "GET", "/api/v1/namespaces/shop/pods/web", "", ""},
		{"list", func() error { return pods.List(t.Context(), &pod, LabelSelector("a=b"), FieldSelector("")) }, "GET",
			"/api/v1/namespaces/shop/pods?labelSelector=a%3Db", "", ""},
		{"create", func() error { return pods.Create(t.Context(), binding, nil) }, "POST", "/api/v1/namespaces/shop/pods", "application/json", `"name":"web"`},
		{"bind", func() error { return pods.Create(t.Context(), binding, nil, Sub("binding")) }, "POST", "/api/v1/namespaces/shop/pods/web/binding",
			"application/json", `"name":"web"`},
		{"patch", func() error {
			return pods.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"a":1}`), &pod, Sub("status"))
		}, "PATCH", "/api/v1/namespaces/shop/pods/web/status", "application/merge-patch+json", `{"a":1}`},
		{"delete", func() error { return pods.Delete(t.Context(), "web", metav1.NewDeleteOptions(0), nil) }, "DELETE", "/api/v1/namespaces/shop/pods/web",
			"application/json", `"gracePeriodSeconds":0`},
		{"delete plain", func() error { return pods.Delete(t.Context(), "web", nil, nil) }, "DELETE", "/api/v1/namespaces/shop/pods/web", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.do(); err != nil {
				t.Fatal(err)
			}
			if got.Method != tc.method || got.URL.RequestURI() != tc.path {
				t.Errorf("%s %s, want %s %s", got.Method, got.URL.RequestURI(), tc.method, tc.path)
			}
			if got.Header.Get("Authorization") != "Bearer secret" || got.ProtoMajor != 2 {
				t.Errorf("authorization %q, protocol %s", got.Header.Get("Authorization"), got.Proto)
			}
			if got.Header.Get("Content-Type") != tc.contentType || !strings.Contains(string(body), tc.body) {
				t.Errorf("body %q of type %q", body, got.Header.Get("Content-Type"))
			}
		})
	}
	if pod.Name != "web" {
		t.Errorf("decoded %q", pod.Name)
	}
	if err := pods.Get(t.Context(), "", &pod); err == nil {
		t.Error("get without a name was sent")
	}
	if err := pods.Delete(t.Context(), "", nil, nil); err == nil {
		t.Error("delete without a name was sent, which would delete the collection")
	}
}

// Services behind the API server's proxies can redirect: no other server may
// get the token.
func TestRedirectsStayOnTheServer(t *testing.T) {
	reached := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(elsewhere.Close)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/proxy":
			http.Redirect(w, r, "/proxy/", http.StatusMovedPermanently)
		case "/proxy/":
			_, _ = io.WriteString(w, "the page")
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		}
	})
	var page []byte
	if err := c.Do(t.Context(), http.MethodGet, "/proxy", nil, &page); err != nil || string(page) != "the page" {
		t.Errorf("to the same server: %q, %v", page, err)
	}
	if err := c.Do(t.Context(), http.MethodGet, "/away", nil, nil); err == nil || !strings.Contains(err.Error(), "redirect to another server") || reached {
		t.Errorf("to another server: %v, reached: %t", err, reached)
	}
	if err := c.Do(t.Context(), http.MethodGet, "/round", nil, nil); err == nil || !strings.Contains(err.Error(), "stopped after") {
		t.Errorf("for ever: %v", err)
	}
}

// The length that an answer declares may be false.
func TestLengthIsNotBelieved(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(1<<60))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if err := c.Do(t.Context(), http.MethodGet, "/", nil, nil); err == nil {
		t.Error("a broken answer was taken")
	}
}

// With a connection per request, concurrent requests use as many HTTP/1.1
// connections, and later ones reuse them; a watch uses HTTP/2.
func TestConnectionPerRequest(t *testing.T) {
	const atOnce = 3
	var mu sync.Mutex
	remotes := map[string]int{}
	together, arrived := make(chan struct{}), 0
	shared := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"proto":%d}}`+"\n", r.ProtoMajor)
			return
		}
		mu.Lock()
		remotes[fmt.Sprint(r.ProtoMajor, " ", r.RemoteAddr)]++
		if arrived++; arrived == atOnce {
			close(together)
		}
		mu.Unlock()
		<-together
		_, _ = io.WriteString(w, "{}")
	})
	c, err := New(&Config{Host: shared.URL("").String(), Insecure: true, ConnectionPerRequest: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	t.Cleanup(c.shortLived.CloseIdleConnections)
	pods := c.Resource(core.Pods, "shop")
	for range 2 { // the second time on the same connections
		var all errgroup.Group
		for range atOnce {
			all.Go(func() error { return pods.Get(t.Context(), "web", nil) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if len(remotes) != atOnce {
		t.Errorf("%d requests, %d at a time, came by %v", 2*atOnce, atOnce, remotes)
	}
	for remote := range remotes {
		if !strings.HasPrefix(remote, "1 ") {
			t.Errorf("a request came by HTTP/%s", remote)
		}
	}
	stream, err := pods.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if event, err := stream.Next(); err != nil || string(event.Object) != `{"proto":2}` {
		t.Errorf("the watch: %s, %v", event.Object, err)
	}
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		is      func(error) bool
		text    string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			status := apierrors.NewNotFound(corev1.Resource("pods"), "web").ErrStatus
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			_ = json.NewEncoder(w).Encode(status)
		}, apierrors.IsNotFound, `"web" not found`},
		"no status": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the proxy is unhappy", http.StatusBadGateway)
		}, apierrors.IsInternalError, "the proxy is unhappy"},
		"nothing of that kind": {http.NotFound, apierrors.IsNotFound, "the server could not find the requested resource (get pods web)"},
		"unauthorized": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			apierrors.IsUnauthorized, ""},
		"rubbish": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			func(error) bool { return true }, "decode answer: invalid character '<'"},
	} {
		t.Run(name, func(t *testing.T) {
			err := serve(t, tc.handler).Resource(core.Pods, "a").Get(t.Context(), "web", &core.Pod{})
			if err == nil || !tc.is(err) && name != "no status" || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRetriesWhereTheServerAsksForIt(t *testing.T) {
	tries := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) != `{"a":1}` {
			t.Errorf("try %d: body %q", tries, body)
		}
		if tries++; tries < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	if err := c.Do(t.Context(), http.MethodPost, "/x", []byte(`{"a":1}`), nil); err != nil {
		t.Fatal(err)
	}
	if tries != 3 {
		t.Errorf("%d tries, want 3", tries)
	}
}

// A proxy may ask to retry after an hour or more; the client waits a minute at
// most.
func TestRetriesDoNotWaitForLong(t *testing.T) {
	for text, least := range map[string]time.Duration{"0": 0, "7": 7 * time.Second, "3600": time.Minute, "9223372036854775807": time.Minute} {
		wait, again := retryAfter(&http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {text}}})
		if !again || wait < least || wait > least+time.Second {
			t.Errorf("Retry-After: %s: %s, %t, want %s and a little", text, wait, again, least)
		}
	}
	for _, text := range []string{"", "-1", "Wed, 21 Oct 2026 07:28:00 GMT", "9223372036854775808"} {
		if wait, again := retryAfter(&http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {text}}}); again {
			t.Errorf("Retry-After: %s: tried again after %s", text, wait)
		}
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		cancel()
	})
	if err := c.Do(ctx, http.MethodGet, "/x", nil, nil); err == nil {
		t.Error("no error")
	}
}

func TestWarnings(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "unknown field \"spec.a\""`)
		w.Header().Add("Warning", `broken`)
		_, _ = io.WriteString(w, "{}")
	})
	var got []string
	if err := c.Do(t.Context(), http.MethodGet, "/x", nil, nil, OnWarning(func(s string) { got = append(got, s) })); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != `unknown field "spec.a"` {
		t.Errorf("got %q", got)
	}
}

func TestPlainHTTPIsRefused(t *testing.T) {
	if _, err := New(&Config{Host: "http://example.test:8080"}); err == nil || !strings.Contains(err.Error(), "only https") {
		t.Errorf("got %v", err)
	}
	if _, err := New(&Config{}); err == nil {
		t.Error("a client of nowhere was made")
	}
}

func TestLoadKubeconfig(t *testing.T) {
	dir := t.TempDir()
	ca, err := pki.NewCA("ca", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Save(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	const good = `apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:6443", certificate-authority: ca.crt}}
users:
- {name: u, user: {client-certificate: ca.crt, client-key: ca.key}}
contexts:
- {name: here, context: {cluster: c, user: u, namespace: shop}}
`
	load := func(text string) (*Config, error) {
		path := filepath.Join(dir, "kubeconfig")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return LoadKubeconfig(path)
	}
	config, err := load(good)
	if err != nil {
		t.Fatal(err)
	}
	if config.Namespace != "shop" || config.CAFile != filepath.Join(dir, "ca.crt") || config.Host != "https://127.0.0.1:6443" {
		t.Errorf("got %+v", config)
	}
	if _, err := New(config); err != nil {
		t.Errorf("files relative to the kubeconfig: %v", err)
	}
	for name, change := range map[string][2]string{
		"exec":            {"client-certificate: ca.crt, client-key: ca.key", "exec: {command: x}"},
		"impersonation":   {"client-key: ca.key", "client-key: ca.key, as: jane"},
		"impersonated":    {"client-key: ca.key", "client-key: ca.key, as-groups: [admins]"},
		"two ways":        {"client-key: ca.key", "client-key: ca.key, username: u, password: p, token: t"},
		"unknown context": {"current-context: here", "current-context: there"},
		"unknown cluster": {"cluster: c,", "cluster: d,"},
		"unknown user":    {"user: u,", "user: v,"},
		"not yaml":        {"apiVersion: v1", "apiVersion: [v1"},
		"proxy":           {"certificate-authority: ca.crt", `proxy-url: "http://p"`},
	} {
		if _, err := load(strings.Replace(good, change[0], change[1], 1)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBearerTokenFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	source := &tokenSource{file: file, clock: fixedClock{time.Unix(0, 0)}}
	if _, err := source.get(); err == nil {
		t.Error("a missing file gave a token")
	}
	for i, text := range []string{"one\n", "two\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		source.clock = fixedClock{time.Unix(int64(i)*3600, 0)}
		if got, err := source.get(); err != nil || got != strings.TrimSpace(text) {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
	}
}

type fixedClock struct{ now time.Time }

func (c fixedClock) Now() time.Time                  { return c.now }
func (c fixedClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }
