package upgrade

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"go.uber.org/zap"

	"kctl/proto/daemon"
)

func init() { checkInterval = 10 * time.Millisecond }

// TestAClientThatIsKilledIsMissed: a client sends to a backend that does not
// read, until the buffers are full, and is killed: the unsent data must not
// keep the connection for ever.
func TestAClientThatIsKilledIsMissed(t *testing.T) {
	t.Parallel()                  // it waits until Patience is over
	silent := make(chan struct{}) // until the test is over
	backend := httptest.NewTLSServer(upgrades(t, func(net.Conn, io.Reader) { <-silent }))
	defer backend.Close()
	defer close(silent)
	to, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxied := make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(proxied)
		proxy := &httputil.ReverseProxy{Transport: backend.Client().Transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
		Serve(proxy, w, r)
	}))
	defer front.Close()
	client, _, err := dial(front.URL[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	kill(t, client)
	select {
	case <-proxied:
	case <-time.After(4 * Patience):
		t.Fatal("the proxy waits for the backend to take what a client said that is gone")
	}
}

// TestWhoEndsItHearsThatTheClientIsGone: the same for a server that is not a
// proxy.
func TestWhoEndsItHearsThatTheClientIsGone(t *testing.T) {
	heard := make(chan struct{})
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, w := Linger(r.Context(), w)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		<-ctx.Done()
		close(heard)
	}))
	front.Listener = daemon.NewConnections(zap.NewNop()).Bound(front.Listener) // like our servers
	front.StartTLS()
	defer front.Close()
	plain, err := net.Dial("tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := tls.Client(plain, &tls.Config{InsecureSkipVerify: true})
	fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	kill(t, plain)
	select {
	case <-heard:
	case <-time.After(time.Minute):
		t.Fatal("the server did not notice that the client is gone")
	}
}

// kill sends until nobody reads, and then resets the connection, as the kernel
// does when it has given up on what a killed program sent.
func kill(t *testing.T, c net.Conn) {
	t.Helper()
	words := make([]byte, 1<<20)
	for {
		if err := c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(words); err != nil {
			break
		}
	}
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}
