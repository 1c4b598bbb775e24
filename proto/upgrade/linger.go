package upgrade

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Linger returns a writer for handlers that end an upgraded connection themselves.
// Closing the connection hijacked from it tells the client so, and then reads what
// the client still sends until it hangs up: a connection that is closed while
// something arrives is reset, and the client may lose what was sent to it last.
// Once ctx has ended there is little time for that. The returned context ends with
// ctx, or when the client has been gone for a while: what it sent before may still
// be on its way.
func Linger(ctx context.Context, w http.ResponseWriter) (context.Context, http.ResponseWriter) {
	ctx, left := context.WithCancel(ctx)
	return ctx, lingerWriter{w, ctx, left}
}

type lingerWriter struct {
	http.ResponseWriter
	ctx  context.Context // of the request
	left context.CancelFunc
}

// Unwrap is what http.ResponseController looks for.
func (w lingerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack returns a connection that is closed gently.
func (w lingerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	open, closed := context.WithCancel(w.ctx)
	watchPeer(c, open.Done(), w.left)
	return &lingeringConn{Conn: c, ctx: w.ctx, closed: closed}, buffer, nil
}

type lingeringConn struct {
	net.Conn
	ctx    context.Context
	closed context.CancelFunc // ends the watch
	once   sync.Once
}

// Close returns when the client has hung up, or its time has run out.
func (c *lingeringConn) Close() error {
	c.once.Do(func() {
		wait := Patience
		if c.ctx.Err() != nil {
			wait = goodbyeTimeout
		}
		c.closed()
		// No deadline: others set those.
		late := time.AfterFunc(wait, func() { _ = c.Conn.Close() })
		defer late.Stop()
		_ = closeWrite(c.Conn)
		_, _ = io.Copy(io.Discard, c.Conn)
		_ = c.Conn.Close()
	})
	return nil
}
