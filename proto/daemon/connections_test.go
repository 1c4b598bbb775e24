package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest"
	"golang.org/x/net/http2"
)

// bounded is a server that takes so many connections, and believes what clients
// say who they are; dial connects to it.
func bounded(t *testing.T, most, strangers, unread int) (dial func(user string) net.Conn) {
	t.Helper()
	connections := NewConnections(zaptest.NewLogger(t))
	connections.Most, connections.Strangers, connections.Unread = most, strangers, unread
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("User"); user != "" {
			OwnConnection(r.Context(), user)
		}
	}))
	server.Listener = connections.Bound(server.Listener)
	connections.Guard(server.Config)
	server.Start()
	t.Cleanup(server.Close)
	return func(user string) net.Conn {
		conn, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if !answers(conn, user) {
			t.Fatalf("a new connection of %q has no answer", user)
		}
		return conn
	}
}

// answers sends a request over a connection.
func answers(conn net.Conn, user string) bool {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nUser: "+user+"\r\n\r\n"); err != nil {
		return false
	}
	_, err := conn.Read(make([]byte, 512))
	return err == nil
}

func TestStrangersHaveSoManyConnections(t *testing.T) {
	dial := bounded(t, 100, 3, maxUnread)
	known := dial("jane")
	first := dial("")
	others := []net.Conn{dial(""), dial(""), dial("")}
	if answers(first, "") {
		t.Error("the oldest of too many strangers is still there")
	}
	for i, conn := range append(others, known) {
		if !answers(conn, "") {
			t.Errorf("connection %d is gone", i)
		}
	}
	if err := others[0].Close(); err != nil {
		t.Fatal(err)
	}
	dial("jane")
	if !answers(others[1], "") {
		t.Error("a closed connection was counted")
	}
}

func TestWhoHasTheMostConnectionsLosesOne(t *testing.T) {
	dial := bounded(t, 5, 5, maxUnread)
	jane := dial("jane")
	greedy := []net.Conn{dial("greedy"), dial("greedy"), dial("greedy"), dial("greedy")}
	john := dial("john")
	if answers(greedy[0], "greedy") {
		t.Error("the oldest of who has the most is still there")
	}
	for i, conn := range append(greedy[1:], jane, john) {
		if !answers(conn, "") {
			t.Errorf("connection %d is gone", i)
		}
	}
}

func TestStrangersMaySendSoMuch(t *testing.T) {
	dial := bounded(t, 100, 100, 64<<10)
	send := func(conn net.Conn, text string) {
		t.Helper()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	header := func(length int) string { return "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", length) }
	small, large, known, patient := dial(""), dial(""), dial("jane"), dial("")
	send(small, header(1<<10))
	send(known, header(100<<10))
	send(large, header(60<<10))
	for range 20 {
		if !answers(patient, strings.Repeat(" ", 5<<10)) { // 100 KiB, in requests that are each read
			t.Fatal("a connection whose requests are read was closed")
		}
	}
	other := dial("")
	send(other, header(20<<10))
	_, _ = io.WriteString(large, "\r\n\r\n")
	if _, err := large.Read(make([]byte, 1)); err == nil {
		t.Error("the connection that has sent the most was answered")
	}
	for name, conn := range map[string]net.Conn{"a small one": small, "a known one": known, "another": other} {
		send(conn, "\r\n\r\n")
		if _, err := conn.Read(make([]byte, 512)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}

// What is sent by HTTP/2 may expand to much more, so it counts for more.
func TestStrangersMaySendLessByHTTP2(t *testing.T) {
	connections := NewConnections(zaptest.NewLogger(t))
	connections.Unread = 128 << 10
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Listener, server.EnableHTTP2 = connections.Bound(server.Listener), true
	connections.Guard(server.Config)
	server.StartTLS()
	t.Cleanup(server.Close)
	tlsConfig := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	tlsConfig.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: tlsConfig}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	framer := http2.NewFramer(conn, conn)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = framer.WriteSettings()
	// 16,000 times "accept-encoding: gzip, deflate", each of which is one byte;
	// unfinished.
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: bytes.Repeat([]byte{0x90}, 16000)})
	for err == nil {
		_, err = framer.ReadFrame()
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(request)
	if err != nil || answer.ProtoMajor != 2 {
		t.Fatalf("an ordinary stranger has %v, %v", answer, err)
	}
	_ = answer.Body.Close()
}

// Connections of a server without limits have no owners.
func TestOwnersWithoutBounds(t *testing.T) {
	OwnConnection(t.Context(), "jane")
}
