package daemon

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxUnowned bounds the open connections whose owner is unknown. Each takes
// about 50 KB. A well-behaved client's connection is a stranger's only for a
// moment.
const maxUnowned = 4096

// maxUnread bounds the bytes that all strangers together may have sent of incomplete
// headers. These bytes stay in memory until the headers are complete, and headers may be
// a megabyte long, so only a few strangers can send such headers at a time.
const maxUnread = 32 << 20

// hpackWeight is how many bytes one byte counts for when sent over HTTP/2, where it may
// stand for a whole field (HPACK): 17 KB could take up a megabyte of memory.
const hpackWeight = 16

// Connections bounds a server's open connections: in all, to half as many as the
// process may have open files, which leaves the rest for its own work; and those of
// strangers to a few thousand. Beyond that, the owner with the most connections
// loses its oldest, so that clients with few are left alone whatever others do.
// Among strangers whose headers are incomplete, the one that has sent the most
// loses.
type Connections struct {
	// Most bounds the connections that are open at once, Strangers those whose owner
	// is unknown, and Unread the bytes of incomplete headers that these have sent
	// together.
	Most, Strangers, Unread int

	logger *zap.Logger
	mu     sync.Mutex
	count  int
	unread int // the sum of the strangers'
	// byOwner are the open ones, the oldest first; those of strangers under "".
	byOwner map[string]*list.List
}

// NewConnections returns the bounds of one server.
func NewConnections(logger *zap.Logger) *Connections {
	most := 1 << 10
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		most = int(min(files.Cur/2, 1<<20))
	}
	return &Connections{
		Most: most, Strangers: min(maxUnowned, most/2), Unread: maxUnread, byOwner: map[string]*list.List{},
		logger: logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0) // there may be thousands
		})),
	}
}

// Bound returns a listener that accepts what listener does, within the bounds.
func (c *Connections) Bound(listener net.Listener) net.Listener {
	return &limitedListener{listener, c}
}

type limitedListener struct {
	net.Listener
	connections *Connections
}

func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	bound := &limitedConn{Conn: conn, connections: l.connections, weight: 1}
	bound.awaiting.Store(true)
	l.connections.add(bound)
	return bound, nil
}

type limitedConn struct {
	net.Conn
	connections *Connections
	// awaiting marks a stranger's connection whose headers are awaited. It changes with
	// connections.mu held.
	awaiting atomic.Bool
	// The rest is guarded by connections.mu; place is nil once it is closed.
	owner  string
	place  *list.Element
	unread int
	// weight is how many bytes one byte counts for.
	weight int
}

// Read implements net.Conn.
func (b *limitedConn) Read(into []byte) (int, error) {
	n, err := b.Conn.Read(into)
	if n > 0 && b.awaiting.Load() {
		b.connections.countUnread(b, n, false)
	}
	return n, err
}

// NetConn is the connection itself, for those who ask the kernel about it.
func (b *limitedConn) NetConn() net.Conn { return b.Conn }

// Close implements net.Conn.
func (b *limitedConn) Close() error {
	b.connections.mu.Lock()
	b.connections.remove(b)
	b.connections.mu.Unlock()
	return b.Conn.Close()
}

func (c *Connections) add(b *limitedConn) {
	c.mu.Lock()
	c.insert(b, "")
	var surplus *limitedConn
	owner := ""
	switch {
	case c.byOwner[""].Len() > c.Strangers:
		surplus = c.oldest("")
	case c.count > c.Most:
		for who, theirs := range c.byOwner {
			if theirs.Len() > c.byOwner[owner].Len() {
				owner = who
			}
		}
		surplus = c.oldest(owner)
	}
	if surplus != nil {
		c.remove(surplus)
	}
	c.mu.Unlock()
	if surplus != nil {
		c.logger.Warn("too many connections: closing the oldest one of the client with the most",
			zap.String("user", owner), zap.Stringer("remote", surplus.RemoteAddr()))
		_ = surplus.Conn.Close()
	}
}

// countUnread counts what a stranger has sent; over HTTP/2 each byte counts for more.
func (c *Connections) countUnread(b *limitedConn, n int, by2 bool) {
	c.mu.Lock()
	if !b.awaiting.Load() || b.place == nil {
		c.mu.Unlock()
		return
	}
	n *= b.weight
	if by2 && b.weight != hpackWeight {
		n += b.unread * (hpackWeight - b.weight)
		b.weight = hpackWeight
	}
	b.unread += n
	c.unread += n
	var surplus *limitedConn
	if c.unread > c.Unread {
		surplus = b
		for e := c.byOwner[""].Front(); e != nil; e = e.Next() {
			if other := e.Value.(*limitedConn); other.unread > surplus.unread {
				surplus = other
			}
		}
		c.remove(surplus)
	}
	c.mu.Unlock()
	if surplus != nil {
		c.logger.Warn("too much data from unauthenticated clients: closing the connection that has sent the most",
			zap.Stringer("remote", surplus.RemoteAddr()))
		_ = surplus.Conn.Close()
	}
}

// setAwaiting starts or ends the counting of what b's owner sends.
func (c *Connections) setAwaiting(b *limitedConn, headers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread -= b.unread
	b.unread = 0
	b.awaiting.Store(headers && b.owner == "" && b.place != nil)
}

func (c *Connections) oldest(owner string) *limitedConn {
	return c.byOwner[owner].Front().Value.(*limitedConn)
}

func (c *Connections) insert(b *limitedConn, owner string) {
	theirs := c.byOwner[owner]
	if theirs == nil {
		theirs = list.New()
		c.byOwner[owner] = theirs
	}
	b.owner, b.place = owner, theirs.PushBack(b)
	c.count++
}

func (c *Connections) remove(b *limitedConn) {
	if b.place == nil {
		return
	}
	theirs := c.byOwner[b.owner]
	theirs.Remove(b.place)
	b.place = nil
	c.count--
	c.unread -= b.unread
	b.unread = 0
	if theirs.Len() == 0 && b.owner != "" {
		delete(c.byOwner, b.owner)
	}
}

type connectionKey struct{}

// Guard makes an http.Server that serves on the listener report whose its connections
// are and when they send a request.
func (c *Connections) Guard(server *http.Server) {
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, ok := r.Context().Value(connectionKey{}).(*limitedConn); ok && b.awaiting.Load() {
			c.setAwaiting(b, false)
		}
		next.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, unwrapTLS(conn))
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		b, ok := unwrapTLS(conn).(*limitedConn)
		switch {
		case !ok || state != http.StateIdle:
		case b.awaiting.Load(): // nothing was answered yet: so HTTP/2 begins
			c.countUnread(b, 0, true)
		default:
			c.setAwaiting(b, true)
		}
	}
}

// unwrapTLS returns a connection without its encryption.
func unwrapTLS(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}

// OwnConnection records whose connection a request came over: the first known
// user among its requests owns it.
func OwnConnection(ctx context.Context, user string) {
	b, ok := ctx.Value(connectionKey{}).(*limitedConn)
	if !ok {
		return
	}
	b.connections.mu.Lock()
	defer b.connections.mu.Unlock()
	if b.owner == "" && b.place != nil {
		b.connections.remove(b)
		b.connections.insert(b, user)
		b.awaiting.Store(false)
	}
}
