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
	return ctx, lingerer{w, ctx, left}
}

type lingerer struct {
	http.ResponseWriter
	ctx  context.Context // of the request
	left context.CancelFunc
}

// Unwrap is what http.ResponseController looks for.
func (w lingerer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack returns a connection that is closed gently.
func (w lingerer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	open, closed := context.WithCancel(w.ctx)
	watch(c, open.Done(), w.left)
	return &lingering{Conn: c, ctx: w.ctx, closed: closed}, buffer, nil
}

type lingering struct {
	net.Conn
	ctx    context.Context
	closed context.CancelFunc // ends the watch
	once   sync.Once
}

// Close returns when the client has hung up, or its time has run out.
func (c *lingering) Close() error {
	c.once.Do(func() {
		wait := Patience
		if c.ctx.Err() != nil {
			wait = farewell
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
