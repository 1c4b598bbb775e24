package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/server/auth"
	"kctl/proto/rest"
)

// After an upgrade, bytes pass in both directions, and the caller's credentials
// go no further.
func TestStreamsPassThrough(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{})
	s.Authenticator = auth.NewAuthenticator(auth.Authentication{Tokens: true}, reviewer(t), clock.RealClock{})
	server := httptest.NewServer(s)
	defer server.Close()
	runtime := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/exec/token" || r.Header.Get("Authorization") != "" {
			http.Error(w, "unexpected "+r.URL.String(), http.StatusTeapot)
			return
		}
		websocket.Handler(func(c *websocket.Conn) { _, _ = io.Copy(c, c) }).ServeHTTP(w, r)
	}))
	defer runtime.Close()
	n.stream = runtime.URL + "/exec/token"
	for _, path := range []string{
		"/exec/ns/p/c?command=sh&input=1&output=1&tty=1&error=1",
		"/exec/ns/p/uid-1/c?command=sh&stdin=true&stdout=true",
		"/attach/ns/p/c?output=1",
		"/portForward/ns/p?port=80",
	} {
		address, err := url.Parse("ws" + strings.TrimPrefix(server.URL, "http") + path)
		if err != nil {
			t.Fatal(err)
		}
		config := &websocket.Config{
			Location: address,
			Origin:   &url.URL{Scheme: "http", Host: "localhost"},
			Version:  websocket.ProtocolVersionHybi13,
			Header:   http.Header{"Authorization": {"Bearer good"}},
		}
		conn, err := config.DialContext(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, text := range []string{"hello", "again"} {
			echo := make([]byte, len(text))
			_, err1 := conn.Write([]byte(text))
			_, err2 := io.ReadFull(conn, echo)
			if err := errors.Join(err1, err2); err != nil || string(echo) != text {
				t.Errorf("%s: %q came back as %q, %v", path, text, echo, err)
			}
		}
		_ = conn.Close()
	}
	if r := n.execs[0]; r.ContainerId != "id-1" || !r.Stdin || !r.Stdout || r.Stderr || !r.Tty || r.Cmd[0] != "sh" {
		t.Errorf("exec of %+v", r)
	}
	if len(n.ports) != 1 || n.ports[0] != 80 {
		t.Errorf("ports %v", n.ports)
	}
	runtime.Close()
	s.Authenticator = auth.NewAuthenticator(auth.Authentication{Anonymous: true}, nil, clock.RealClock{})
	for upgrade, want := range map[string]string{"SPDY/3.1": "502 the runtime's streaming server", "": "500 Upgrade request required"} {
		if code, body := do(t, server, "POST", "/exec/ns/p/c?command=sh&output=1", "Connection", "Upgrade", "Upgrade",
			upgrade); !strings.HasPrefix(fmt.Sprint(code, " ", body), want) {
			t.Errorf("with the streaming server gone, upgrading to %q: %d %q", upgrade, code, body)
		}
	}
	asked := len(n.execs)
	for _, headers := range [][]string{nil, {"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {"Connection", "Upgrade", "Upgrade", "SPDY\x80"}} {
		code, body := do(t, server, "POST", "/exec/ns/p/c?command=sh&output=1", headers...)
		if code != 500 || body != "Upgrade request required\n" || len(n.execs) != asked {
			t.Errorf("%q: %d %q, and the runtime was asked for %d addresses that nobody will use", headers, code, body, len(n.execs)-asked)
		}
	}
}

// The runtime keeps an address until it is used.
func TestAddressesOfCallersThatAreGone(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Anonymous: true})
	var used []string
	runtime := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		used = append(used, r.URL.Path+r.Header.Get("Upgrade"))
	}))
	defer runtime.Close()
	ctx, leave := context.WithCancel(t.Context())
	n.stream, n.execBegins = runtime.URL+"/exec/token", leave
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/exec/ns/p/c?command=sh&output=1", nil)
	r.Header.Set("Connection", "keep-alive, upgrade")
	r.Header.Set("Upgrade", "SPDY/3.1")
	s.ServeHTTP(httptest.NewRecorder(), r)
	if want := []string{"/exec/token"}; !slices.Equal(used, want) {
		t.Errorf("addresses used: %q, want %q", used, want)
	}
}

// reviewer is a client of an API server that authenticates every token.
func reviewer(t *testing.T) *rest.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":{"authenticated":true,"user":{"username":"alice"}}}`)
	}))
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
