package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"kctl/apiserver/internal/authn"
)

// Itself serves the server's own requests, over connections within its memory. It is safe
// for concurrent use.
type Itself struct {
	listener *pipes
}

// NewItself returns an Itself. Connections wait until it serves.
func NewItself() *Itself { return &Itself{listener: newPipes()} }

// Dial connects to the server, wherever address is.
func (i *Itself) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return i.listener.dial(ctx)
}

// Serve answers requests as those of the user system:apiserver, until ctx ends.
func (i *Itself) Serve(ctx context.Context, handler http.Handler) error {
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = net.JoinHostPort("127.0.0.1", "0") // for the audit log; such a connection has no address
			handler.ServeHTTP(w, r)
		}),
		ConnContext: authn.FromItself, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(i.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the server's own requests: %w", err)
	}
	return ctx.Err()
}

// pipes is a listener within the process. Its connections are net.Pipe's, whose deadlines end
// exactly when they are moved, as net/http moves them between requests: those of gRPC's bufconn
// may end a later read.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    func()
}

func newPipes() *pipes {
	p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.accepted <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.close()
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "itself", Net: "pipe"} }
