package upgrade

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"
)

// TestEitherSideEndsIt: when one side closes its half, the other is told, and
// when that one closes, too, nothing is left.
func TestEitherSideEndsIt(t *testing.T) {
	for _, leaver := range []string{"client", "backend"} {
		t.Run(leaver, func(t *testing.T) {
			backends := make(chan net.Conn, 1)
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c, buffer, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprint(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				_ = buffer.Flush()
				backends <- c
			}))
			defer backend.Close()
			to, err := url.Parse(backend.URL)
			if err != nil {
				t.Fatal(err)
			}
			proxied := make(chan struct{})
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(proxied)
				proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
				Serve(proxy, w, r)
			}))
			defer front.Close()

			client, err := net.Dial("tcp", front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			reader := bufio.NewReader(client)
			answer, err := http.ReadResponse(reader, nil)
			if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("%v %v", answer, err)
			}
			served := <-backends
			defer served.Close()
			leaves, stays := client, io.Reader(served)
			if leaver == "backend" {
				leaves, stays = served, reader
			}
			if err := leaves.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(stays); err != nil {
				t.Errorf("the one that stays: %v", err)
			}
			_, _ = client.Close(), served.Close()
			select {
			case <-proxied:
			case <-time.After(time.Minute):
				t.Fatal("the proxy waits for the one that stays")
			}
		})
	}
}
