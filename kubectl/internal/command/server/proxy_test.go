package server

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// TestFilter: by default a proxy answers only to its own name, and refuses
// WebSockets and writes to pages of other sites; other answers their browser
// keeps from them. It is the same whatever the prefix below which it serves the API.
func TestFilter(t *testing.T) {
	flags := newProxy(&frame.CLI{}).Flags()
	p := &proxyOptions{}
	for name, into := range map[string]*string{"accept-hosts": &p.acceptHosts, "accept-paths": &p.acceptPaths, "reject-paths": &p.rejectPaths,
		"reject-methods": &p.rejectMethods} {
		*into = flags.Lookup(name).DefValue
	}
	f, err := p.filter()
	if err != nil {
		t.Fatal(err)
	}
	const evil = "https://evil.example"
	for _, test := range []struct {
		method, host, path string
		origin, upgrade    string
		want               bool
	}{
		{"GET", "localhost:8001", "/api", "", "", true},
		{"POST", "[::1]:8001", "/api/v1/namespaces/a/configmaps", "", "", true},
		{"GET", "evil.example", "/api", "", "", false}, // a name that was made to mean loopback
		{"GET", "localhost.evil.example:8001", "/api", "", "", false},
		{"GET", "127.0.0.1:8001", "/api/v1/namespaces/a/pods/p/exec", "", "", false},
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", evil, "", true}, // which its browser keeps from it
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", evil, "websocket", false},
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", "null", "websocket", false},
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", "http://127.0.0.1:8001", "websocket", true},
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", "http://localhost:3000", "websocket", true},
		{"POST", "127.0.0.1:8001", "/api/v1/namespaces/a/pods", evil, "", false},
		{"DELETE", "127.0.0.1:8001", "/api/v1/namespaces/a", "http://127.0.0.1.evil.example", "", false},
		{"POST", "127.0.0.1:8001", "/api/v1/namespaces/a/pods", "://", "", false},
	} {
		for _, p.prefix = range []string{"/", "/its-own"} {
			r := httptest.NewRequest(test.method, strings.TrimSuffix(p.prefix, "/")+test.path, nil)
			r.Host = test.host
			for name, value := range map[string]string{"Origin": test.origin, "Upgrade": test.upgrade} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			asked := false
			answer := httptest.NewRecorder()
			p.filtered(f, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true })).ServeHTTP(answer, r)
			if asked != test.want || asked == (answer.Code == http.StatusForbidden) {
				t.Errorf("below %s: %+v: passed on: %t, %d", p.prefix, test, asked, answer.Code)
			}
		}
	}
}

// TestUnixSocket: a proxy replaces an earlier one's socket and no other file, and others
// can't connect, whatever files the user makes are readable by.
func TestUnixSocket(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	p := &proxyOptions{unixSocket: filepath.Join(dir, "file")}
	if err := os.WriteFile(p.unixSocket, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.listen(t.Context()); err == nil {
		t.Error("a file gave way to a socket")
	}
	if text, err := os.ReadFile(p.unixSocket); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
	p.unixSocket = filepath.Join(dir, "socket")
	for range 2 { // the second finds the first one's
		listener, err := p.listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if info, err := os.Stat(p.unixSocket); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%v, %v", info, err)
		}
	}
}

// A socket and a port are two places, of which a proxy has one.
func TestUnixSocketOrPort(t *testing.T) {
	p := &proxyOptions{port: 8009, unixSocket: filepath.Join(t.TempDir(), "socket")}
	if err := p.run(t.Context()); err == nil || err.Error() != "cannot set --unix-socket and --port at the same time" {
		t.Errorf("said %v", err)
	}
}

// Requests keep the path that they have, and get the server's before it if asked.
func TestServerPath(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer server.Close()
	for appended, want := range map[bool]string{false: "/api/v1/pods", true: "/cluster/a/api/v1/pods"} {
		var said strings.Builder
		c := frame.New(frame.Streams{In: strings.NewReader(""), Out: &said, Err: &said}, clock.RealClock{})
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		c.Flags.Add(flags)
		if err := flags.Parse([]string{"--server=" + server.URL + "/cluster/a"}); err != nil {
			t.Fatal(err)
		}
		p := &proxyOptions{CLI: c, prefix: "/", acceptHosts: "^localhost$", acceptPaths: "^.*", rejectPaths: "^$", rejectMethods: "^$", appendServerPath: appended}
		handler, err := p.handler()
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
		r.Host = "localhost"
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if got := <-asked; got != want {
			t.Errorf("with --append-server-path=%t the server is asked for %s, want %s", appended, got, want)
		}
		if warned := strings.Contains(said.String(), "server path /cluster/a, use --append-server-path"); warned == appended {
			t.Errorf("with --append-server-path=%t: %q", appended, said.String())
		}
	}
}

// Upgraded connections are kept alive as often as --keepalive says.
func TestKeepalive(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c := frame.New(frame.Streams{}, clock.RealClock{})
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags.Add(flags)
	if err := flags.Parse([]string{"--server=" + server.URL}); err != nil {
		t.Fatal(err)
	}
	config, err := (&proxyOptions{CLI: c, keepalive: 77 * time.Second}).upgrading()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := config.Dial(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var seconds int
	var failed error
	if err := raw.Control(func(fd uintptr) { seconds, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if seconds != 77 {
		t.Errorf("the first question comes after %d s", seconds)
	}
}
