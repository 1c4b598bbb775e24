package upgrade

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	// Patience is how long one side has, when the other has left, to receive what
	// is on its way and to leave too. Then the connection is closed.
	Patience = 10 * time.Second
	// goodbyeTimeout is how long a client may take to close the connection after
	// its protocol's goodbye. Old SPDY clients (kubectl before 1.22) discard
	// unread data if the connection ends first.
	goodbyeTimeout = time.Second
	// maxDiscarded bounds what is read from a backend for a client that is gone.
	maxDiscarded = 1 << 20
)

// IsRequested reports whether ReverseProxy will take a request with these headers as one for
// an upgrade.
func IsRequested(header http.Header) bool {
	return header.Get("Upgrade") != "" && httpguts.HeaderValuesContainsToken(header.Values("Connection"), "Upgrade")
}

// Serve forwards a request through the proxy. If it becomes a connection that is
// no longer HTTP, each direction ends separately: ReverseProxy by itself drops
// what one side sent last when the other can no longer be written to. A backend's status that
// is none is an error.
func Serve(proxy *httputil.ReverseProxy, w http.ResponseWriter, r *http.Request) {
	both := newPair()
	passing := *proxy
	passing.ModifyResponse = func(answer *http.Response) error {
		if err := checkStatus(answer.StatusCode); err != nil {
			return err
		}
		if modify := proxy.ModifyResponse; modify != nil {
			if err := modify(answer); err != nil {
				return err
			}
		}
		if connection, ok := answer.Body.(io.ReadWriteCloser); ok && answer.StatusCode == http.StatusSwitchingProtocols {
			answer.Body = both.setBackend(connection)
		}
		return nil
	}
	writer := &pairWriter{ResponseWriter: w, both: both, own: w.Header().Clone()}
	passing.ServeHTTP(writer, r)
	writer.restore() // the caller answers if the backend did not
}

// checkStatus returns an error for a status that can't be passed on: http.ResponseWriter panics
// when it is written. If the writer delays that, as gin's does, ReverseProxy's goroutine that
// flushes panics, and nothing recovers that: any pod behind a proxy could end the process.
func checkStatus(code int) error {
	if code == http.StatusSwitchingProtocols || code >= http.StatusOK && code <= 999 {
		return nil
	}
	return fmt.Errorf("answered with %d, which is not an HTTP status", code)
}

// Carry copies between a client and a backend until both have ended, or one has
// ended and the other does not follow, or ctx ends. Both are closed then. The
// client's CloseWrite, if it has one, says goodbye.
func Carry(ctx context.Context, client, backend io.ReadWriteCloser) {
	both := newPair()
	from, to := both.setBackend(backend), both.setClient(client)
	defer both.close()
	defer context.AfterFunc(ctx, func() { _ = from.Close() })()
	var copies sync.WaitGroup
	copies.Go(func() {
		_, _ = io.Copy(from, to) // neither end fails
		_ = from.CloseWrite()
	})
	copies.Go(func() {
		_, _ = io.Copy(to, from)
		_ = to.CloseWrite()
	})
	copies.Wait()
}

// pairWriter gives ReverseProxy the client's end of the pair.
type pairWriter struct {
	http.ResponseWriter
	both *pair
	// own are the headers that were set before the backend was asked. ReverseProxy clears
	// all after an informational response, as cleared says.
	own     http.Header
	cleared bool
}

// Unwrap is what http.ResponseController looks for.
func (w *pairWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *pairWriter) WriteHeader(code int) {
	if code < http.StatusOK && code != http.StatusSwitchingProtocols {
		w.cleared = true
	} else {
		w.restore()
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *pairWriter) restore() {
	if !w.cleared {
		return
	}
	w.cleared = false
	header := w.Header()
	for name, values := range w.own {
		header[name] = slices.Concat(values, header[name])
	}
}

// Hijack is where the connection stops being HTTP.
func (w *pairWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.restore()
	c, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	end := w.both.setClient(bufferedConn{c, buffer.Reader})
	watchPeer(c, w.both.closed, w.both.endSoon)
	return hijackedConn{c, end}, buffer, nil
}

// bufferedConn is a connection from which something was already read.
type bufferedConn struct {
	net.Conn
	buffer *bufio.Reader
}

func (c bufferedConn) Read(p []byte) (int, error) {
	if n := c.buffer.Buffered(); n > 0 {
		return c.buffer.Read(p[:min(n, len(p))])
	}
	return c.Conn.Read(p)
}

func (c bufferedConn) CloseWrite() error { return closeWrite(c.Conn) }

// hijackedConn is the client's end, as a net.Conn.
type hijackedConn struct {
	net.Conn
	end *clientEnd
}

func (h hijackedConn) Read(p []byte) (int, error)  { return h.end.Read(p) }
func (h hijackedConn) Write(p []byte) (int, error) { return h.end.Write(p) }
func (h hijackedConn) CloseWrite() error           { return h.end.CloseWrite() }
func (h hijackedConn) Close() error                { return h.end.Close() }
