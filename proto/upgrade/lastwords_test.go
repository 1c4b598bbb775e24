package upgrade

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// upgrades is a backend that switches to any requested protocol, and then calls
// speak.
func upgrades(t *testing.T, speak func(net.Conn, io.Reader)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_ = buffer.Flush()
		speak(c, buffer)
	}
}

// relayed is a backend behind two proxies, like a container runtime behind a
// kubelet and an API server.
func relayed(t *testing.T, backend func(net.Conn, io.Reader)) (front string) {
	t.Helper()
	last := httptest.NewServer(upgrades(t, backend))
	t.Cleanup(last.Close)
	address := last.URL
	for range 2 {
		to, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
		hop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Serve(proxy, w, r) }))
		t.Cleanup(hop.Close)
		address = hop.URL
	}
	return address[len("http://"):]
}

func dial(front string) (*net.TCPConn, *bufio.Reader, error) {
	c, err := net.Dial("tcp", front)
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	reader := bufio.NewReader(c)
	answer, err := http.ReadResponse(reader, nil)
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("answered %d", answer.StatusCode)
	}
	return c.(*net.TCPConn), reader, err
}

// lastWords are sent right before a connection is closed: little enough for the
// kernel to take at once, so that the close follows immediately.
var lastWords = bytes.Repeat([]byte("heard kubectl..\n"), 1<<10)

// chatter is what the other side keeps sending after the close, which makes the
// kernel answer with a reset.
func chatter(to io.Writer) {
	for {
		if _, err := to.Write([]byte("more")); err != nil {
			return
		}
	}
}

const (
	workers = 8
	rounds  = 20
)

func many(t *testing.T, once func() error) {
	t.Helper()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range rounds {
				if err := once(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestTheBackendsLastWordsArrive: a backend sends something and closes at once,
// while the client still sends.
func TestTheBackendsLastWordsArrive(t *testing.T) {
	t.Parallel()
	front := relayed(t, func(c net.Conn, r io.Reader) {
		_, _ = io.ReadFull(r, make([]byte, 4)) // the client has sent something
		_, _ = c.Write(lastWords)
	})
	many(t, func() error {
		c, reader, err := dial(front)
		if err != nil {
			return err
		}
		defer c.Close()
		go chatter(c)
		got := make([]byte, len(lastWords))
		if n, err := io.ReadFull(reader, got); err != nil {
			return fmt.Errorf("%d of %d bytes arrived: %w", n, len(lastWords), err)
		}
		if !bytes.Equal(got, lastWords) {
			return fmt.Errorf("something else arrived")
		}
		return nil
	})
}

// TestTheClientsLastWordsArrive: a client sends something and closes at once,
// while the backend still sends.
func TestTheClientsLastWordsArrive(t *testing.T) {
	t.Parallel()
	results := make(chan error, workers*rounds)
	front := relayed(t, func(c net.Conn, r io.Reader) {
		go chatter(c)
		got, _ := io.ReadAll(r) // to the end, or to a reset after it
		if !bytes.Equal(got, lastWords) {
			results <- fmt.Errorf("%d of %d bytes arrived", len(got), len(lastWords))
			return
		}
		results <- nil
	})
	many(t, func() error {
		c, reader, err := dial(front)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := io.ReadFull(reader, make([]byte, 4)); err != nil { // the backend has sent something
			return err
		}
		_, err = c.Write(lastWords)
		return err
	})
	for range workers * rounds {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
