package balance

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/proto/eventually"
)

// server is an API server as the balancer sees it.
type server struct {
	*httptest.Server
	name string
	code atomic.Int32 // of /readyz
}

// broken is the code of a server that does not answer.
const broken = 0

func newServer(t *testing.T, name string) *server {
	s := &server{name: name}
	s.code.Store(http.StatusUnauthorized)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			if s.code.Load() == broken {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(int(s.code.Load()))
			return
		}
		if r.URL.Path == "/watch" {
			fmt.Fprintln(w, s.name)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, s.name)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// balanced starts a balancer and returns its address.
func balanced(t *testing.T, o Options) (*Balancer, string) {
	t.Helper()
	o.CheckEvery, o.CheckTimeout, o.Clock, o.Logger = 5*time.Millisecond, time.Minute, clock.RealClock{}, zap.NewNop()
	if o.MaxConnections == 0 {
		o.MaxConnections = 100
	}
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b, listener.Addr().String()
}

func ask(address, path string) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	return client.Get("https://" + address + path)
}

// who sends requests, and counts the answers by server.
func who(t *testing.T, address string) map[string]int {
	t.Helper()
	names := map[string]int{}
	for range 10 {
		answer, err := ask(address, "/")
		if err != nil {
			t.Fatal(err)
		}
		name, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		names[string(name)]++
	}
	return names
}

func addresses(servers ...*server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Listener.Addr().String())
	}
	return all
}

func TestConnectionsGoToThoseWhoAnswer(t *testing.T) {
	a, z := newServer(t, "a"), newServer(t, "z")
	b, address := balanced(t, Options{Backends: addresses(a, z)})
	both := func() bool { return b.backends[0].isHealthy() && b.backends[1].isHealthy() }
	eventually.Holds(t, "both answer", both)
	if names := who(t, address); names["a"] != 5 || names["z"] != 5 {
		t.Errorf("not shared out: %v", names)
	}
	a.code.Store(http.StatusInternalServerError)
	eventually.Holds(t, "a is not ready", func() bool { return !b.backends[0].isHealthy() })
	if names := who(t, address); names["z"] != 10 {
		t.Errorf("with a not ready: %v", names)
	}
	z.code.Store(http.StatusInternalServerError)
	eventually.Holds(t, "neither is ready", func() bool { return b.Healthy(t.Context()) != nil })
	if names := who(t, address); names["a"]+names["z"] != 10 {
		t.Errorf("with none ready, none is as good as another: %v", names)
	}
	a.code.Store(http.StatusOK)
	z.code.Store(http.StatusOK)
	eventually.Holds(t, "both answer again", both)
	z.CloseClientConnections()
	z.Close()
	if names := who(t, address); names["a"] != 10 {
		t.Errorf("with z gone: %v", names)
	}
}

// A server that does not answer loses its connections, so that watches start
// again elsewhere; one that says it is not ready keeps them.
func TestConnectionsToTheSilentAreEnded(t *testing.T) {
	a := newServer(t, "a")
	b, address := balanced(t, Options{Backends: addresses(a)})
	eventually.Holds(t, "a answers", func() bool { return b.Healthy(t.Context()) == nil })
	answer, err := ask(address, "/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadFull(answer.Body, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	a.code.Store(http.StatusInternalServerError)
	eventually.Holds(t, "a is not ready", func() bool { return b.Healthy(t.Context()) != nil })
	if n := b.backends[0].connections(); n != 1 {
		t.Errorf("%d connections to a server that is not ready, want the one it had", n)
	}
	a.code.Store(http.StatusOK)
	eventually.Holds(t, "a answers again", func() bool { return b.Healthy(t.Context()) == nil })
	a.code.Store(broken)
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the watch ended in good order")
	}
	eventually.Holds(t, "the connection is counted out", func() bool { return b.backends[0].connections() == 0 })
}

func TestHalfClosedConnectionsGoOn(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text, _ := io.ReadAll(conn) // until the client has sent everything
				_, _ = conn.Write([]byte(strings.ToUpper(string(text))))
			}()
		}
	}()
	_, address := balanced(t, Options{Backends: []string{listener.Addr().String()}, MaxConnections: 1})
	for range 3 { // one after another: each gives its place back
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte("hello"))
		_ = conn.(*net.TCPConn).CloseWrite()
		if text, err := io.ReadAll(conn); err != nil || string(text) != "HELLO" {
			t.Errorf("%q, %v", text, err)
		}
		conn.Close()
	}
}

// Whoever stays when the other side has left loses the connection, and its place goes to the next: a client that does not
// read what the server has sent, one that does, and a server whose client has ended its half.
func TestWhoStaysIsCutOff(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const (
		unread, read, halfClosed = 'u', 'r', 'h'
		long                     = 64 << 20 // more than all buffers hold
	)
	served := make(chan byte, 10)
	serve := func(conn net.Conn) {
		defer conn.Close()
		what := make([]byte, 1)
		_, _ = io.ReadFull(conn, what)
		switch what[0] {
		case unread: // sends until nobody takes any more, and gives up
			served <- unread
			_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = conn.Write(make([]byte, long))
			_ = conn.(*net.TCPConn).SetLinger(0)
			return
		case read:
			served <- read
			return
		case halfClosed:
			served <- halfClosed
		}
		<-t.Context().Done()
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	_, address := balanced(t, Options{Backends: []string{listener.Addr().String()}, MaxConnections: 1, Patience: 5 * time.Millisecond})
	for _, what := range []byte{unread, read, halfClosed, read} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // and not before: it stays
		_, _ = conn.Write([]byte{what})
		select {
		case got := <-served:
			if got != what {
				t.Fatalf("the server read %q, want %q", got, what)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q waits for a place that is not given back", what)
		}
		if what == halfClosed {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}
}

func TestNewRefusesNonsense(t *testing.T) {
	good := Options{CheckEvery: 1, CheckTimeout: 1, Patience: 1, MaxConnections: 1}
	if _, err := New(good); err == nil {
		t.Error("no servers")
	}
	good.Backends = []string{"no-port"}
	if _, err := New(good); err == nil {
		t.Error("no port")
	}
	if _, err := New(Options{Backends: []string{"a:1"}}); err == nil {
		t.Error("no times")
	}
}
