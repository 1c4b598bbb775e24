package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"google.golang.org/grpc/test/bufconn"

	"kctl/apiserver/internal/authn"
)

// Itself serves the server's own requests, over connections within its memory. It is safe
// for concurrent use.
type Itself struct {
	listener *bufconn.Listener
}

// ownBuffer is how much each direction of such a connection holds back for its reader.
const ownBuffer = 64 << 10

// NewItself returns an Itself. Connections wait until it serves.
func NewItself() *Itself { return &Itself{listener: bufconn.Listen(ownBuffer)} }

// Dial connects to the server, wherever address is.
func (i *Itself) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return i.listener.DialContext(ctx)
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
