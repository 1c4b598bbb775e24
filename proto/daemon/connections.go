package daemon

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// mostStrangers is how many connections may be open of which it is not known
// whose they are. Each takes some 50 KB, and is for a moment only a stranger's
// where its owner means well.
const mostStrangers = 4096

// Connections bounds how many connections a server has open: half as many as the
// process may have files, so that it has the others for its own work, and of those
// of strangers no more than a few thousand. Beyond that whoever has the most loses
// the oldest, which leaves those who have few alone, whoever else asks for more.
type Connections struct {
	// Most may be open at once, and Strangers of those whose owner is not known.
	Most, Strangers int

	logger *zap.Logger
	mu     sync.Mutex
	count  int
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
		Most: most, Strangers: min(mostStrangers, most/2), byOwner: map[string]*list.List{},
		logger: logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0) // there may be thousands
		})),
	}
}

// Bound returns a listener that accepts what listener does, within the bounds.
func (c *Connections) Bound(listener net.Listener) net.Listener {
	return &boundListener{listener, c}
}

type boundListener struct {
	net.Listener
	all *Connections
}

func (l *boundListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	bound := &boundConn{Conn: conn, all: l.all}
	l.all.add(bound)
	return bound, nil
}

type boundConn struct {
	net.Conn
	all *Connections
	// owner and place are guarded by all.mu; place is nil once it is closed.
	owner string
	place *list.Element
}

// NetConn is the connection itself, for those who ask the kernel about it.
func (b *boundConn) NetConn() net.Conn { return b.Conn }

// Close implements net.Conn.
func (b *boundConn) Close() error {
	b.all.mu.Lock()
	b.all.remove(b)
	b.all.mu.Unlock()
	return b.Conn.Close()
}

func (c *Connections) add(b *boundConn) {
	c.mu.Lock()
	c.insert(b, "")
	var surplus *boundConn
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
		c.logger.Warn("too many connections: the oldest of who has the most is closed", zap.String("user", owner), zap.Stringer("remote", surplus.RemoteAddr()))
		_ = surplus.Conn.Close()
	}
}

func (c *Connections) oldest(owner string) *boundConn {
	return c.byOwner[owner].Front().Value.(*boundConn)
}

func (c *Connections) insert(b *boundConn, owner string) {
	theirs := c.byOwner[owner]
	if theirs == nil {
		theirs = list.New()
		c.byOwner[owner] = theirs
	}
	b.owner, b.place = owner, theirs.PushBack(b)
	c.count++
}

func (c *Connections) remove(b *boundConn) {
	if b.place == nil {
		return
	}
	theirs := c.byOwner[b.owner]
	theirs.Remove(b.place)
	b.place = nil
	c.count--
	if theirs.Len() == 0 && b.owner != "" {
		delete(c.byOwner, b.owner)
	}
}

type connectionKey struct{}

// Context is the ConnContext of the http.Server that serves on the listener.
func (c *Connections) Context(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// OwnConnection says whose connection a request came by: that of the first of its
// requests of which that is known.
func OwnConnection(ctx context.Context, user string) {
	b, ok := ctx.Value(connectionKey{}).(*boundConn)
	if !ok {
		return
	}
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if b.owner == "" && b.place != nil {
		b.all.remove(b)
		b.all.insert(b, user)
	}
}
