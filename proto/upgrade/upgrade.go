// Package upgrade lets proxies pass upgraded connections (SPDY, WebSocket) on
// with httputil.ReverseProxy, and end them as soon as either side is gone.
//
// Whoever proxies streams wraps the response writer. It knows nothing of what
// is said on the connection.
package upgrade

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// Whole returns a writer whose hijacked connection is closed as a whole.
// ReverseProxy passes the end of one direction on and waits for the other; but
// nobody who speaks SPDY or WebSocket says goodbye that way, and a client that
// died would leave its stream open for as long as the container writes.
func Whole(w http.ResponseWriter) http.ResponseWriter { return whole{w} }

type whole struct{ http.ResponseWriter }

// Unwrap is what http.ResponseController looks for.
func (w whole) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack hides that the connection could be closed by halves.
func (w whole) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return connection{c}, buffer, nil
}

type connection struct{ net.Conn }

var errGone = errors.New("the client is gone")

// Read makes the end of what the client says an error, which ends the proxying.
func (c connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = errGone
	}
	return n, err
}
