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

// Linger returns a writer for those who end an upgraded connection themselves.
// Closing what is hijacked from it tells the client so, and takes what it still
// says until it hangs up, too: a connection that is closed while something
// arrives is reset, and the client may lose what was sent to it last. Once ctx
// has ended there is little time for that. The context that it returns is ctx until
// the client has left and is missed: what it said before may still be on its way.
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

// Close returns when the client has hung up, or its time is over.
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
