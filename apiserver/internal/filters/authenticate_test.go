package filters

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/request"
	"kctl/proto/clientauth"
	"kctl/proto/daemon"
)

type authenticator struct {
	user *request.User
	err  error
}

func (a authenticator) Authenticate(*http.Request) (*request.User, bool, error) {
	return a.user, a.user != nil, a.err
}

// Each user is counted, under one of a few names (upstream's authenticated_user_requests).
func TestUsersAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	for name, times := range map[string]int{"kubelet": 1, "jane": 2, "system:node:n1": 1, "jane@example.com": 1, "system:serviceaccount:kube-system:default": 1} {
		handler := chain(ok, Authenticate(authenticator{user: &request.User{Username: name}}, nil,
			prometheus.WrapRegistererWith(prometheus.Labels{"of": name}, registry), clk, zap.NewNop()))
		for range times {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		}
	}
	const want = `# HELP authenticated_user_requests Counter of authenticated requests broken out by username, if it is one of those that every cluster has.
# TYPE authenticated_user_requests counter
authenticated_user_requests{of="jane",username="other"} 2
authenticated_user_requests{of="jane@example.com",username="email_id"} 1
authenticated_user_requests{of="kubelet",username="kubelet"} 1
authenticated_user_requests{of="system:node:n1",username="other"} 1
authenticated_user_requests{of="system:serviceaccount:kube-system:default",username="system:serviceaccount:kube-system:default"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "authenticated_user_requests"); err != nil {
		t.Error(err)
	}
}

// TestAuthenticationOwnsConnections: connections of unauthenticated clients
// never get an authenticated client's connection closed.
func TestAuthenticationOwnsConnections(t *testing.T) {
	connections := daemon.NewConnections(zap.NewNop())
	connections.Strangers = 1
	jane := authenticator{user: &request.User{Username: "jane"}}
	nobody := authenticator{user: &request.User{Username: "system:anonymous"}}
	for name, test := range map[string]struct {
		who  authenticator
		open bool
	}{"somebody": {jane, true}, "anonymous": {nobody, false}, "refused": {authenticator{}, false}} {
		server := httptest.NewUnstartedServer(chain(ok, Authenticate(test.who, nil, prometheus.NewRegistry(), clk, zap.NewNop())))
		server.Listener = connections.Bound(server.Listener)
		connections.Guard(server.Config)
		server.Start()
		defer server.Close()
		answered := func(conn net.Conn) bool {
			_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			return err == nil && func() error { _, err := conn.Read(make([]byte, 4096)); return err }() == nil
		}
		var conns []net.Conn
		for range 2 {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if !answered(conn) {
				t.Fatalf("%s: no answer", name)
			}
			conns = append(conns, conn)
		}
		if answered(conns[0]) != test.open {
			t.Errorf("%s: the first connection is open: %t", name, !test.open)
		}
	}
}

func TestAuthenticate(t *testing.T) {
	seen := ""
	handler := func(c *gin.Context) {
		seen = request.UserFrom(c.Request.Context()).Username + c.GetHeader("Authorization") + c.GetHeader("X-Remote-User") + c.GetHeader("X-Remote-Extra-Key") + c.GetHeader("X-Own") + c.GetHeader("Sec-WebSocket-Protocol")
		ok(c)
	}
	with := func(a authenticator) http.Handler {
		headers := []clientauth.HeaderNames{clientauth.CommonHeaderNames, {Username: []string{"x-own"}}}
		return chain(handler, Authenticate(a, headers, prometheus.NewRegistry(), clk, zap.NewNop()))
	}
	w := serve(with(authenticator{user: &request.User{Username: "jane"}}), "GET", "/",
		"Authorization", "Bearer x", "Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.eA",
		"X-Remote-User", "root", "X-Remote-Extra-Key", "v", "X-Own", "root")
	if w.Code != 200 || seen != "jane" {
		t.Errorf("%d, handler saw %q", w.Code, seen)
	}
	for name, a := range map[string]authenticator{"nobody": {}, "bad": {err: errors.New("token has expired")}} {
		status := statusOf(t, serve(with(a), "GET", "/"))
		if status.Reason != metav1.StatusReasonUnauthorized || status.Message != "Unauthorized" {
			t.Errorf("%s: %+v", name, status)
		}
	}
}

// TestStrangersConnections: an unauthenticated client's HTTP/2 connection is
// for one request only.
func TestStrangersConnections(t *testing.T) {
	for name, test := range map[string]struct {
		a      authenticator
		closed bool
	}{
		"known":     {authenticator{user: &request.User{Username: "jane"}}, false},
		"anonymous": {authenticator{user: &request.User{Username: "system:anonymous"}}, true},
		"nobody":    {authenticator{}, true},
		"bad":       {authenticator{err: errors.New("token has expired")}, true},
	} {
		for version := 1; version <= 2; version++ {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.ProtoMajor = version
			w := httptest.NewRecorder()
			chain(ok, Authenticate(test.a, nil, prometheus.NewRegistry(), clk, zap.NewNop())).ServeHTTP(w, r)
			if closed := w.Header().Get("Connection") == "close"; closed != (test.closed && version == 2) {
				t.Errorf("%s, HTTP/%d: closed %v", name, version, closed)
			}
		}
	}
}
