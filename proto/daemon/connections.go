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

// mostStrangers is how many connections may be open of which it is not known
// whose they are. Each takes some 50 KB, and is for a moment only a stranger's
// where its owner means well.
const mostStrangers = 4096

// mostUnread is how much all strangers may have sent of requests of which the headers
// are not complete. It is kept until they are, and a header may be a megabyte long: only
// so few strangers can send such ones at a time.
const mostUnread = 32 << 20

// compressed is as how many bytes one counts that was sent by HTTP/2, where it may stand
// for a whole field (HPACK): a megabyte of memory was had for 17 KB.
const compressed = 16

// Connections bounds how many connections a server has open: half as many as the
// process may have files, so that it has the others for its own work, and of those
// of strangers no more than a few thousand. Beyond that whoever has the most loses
// the oldest, which leaves those who have few alone, whoever else asks for more. Of
// strangers whose requests are not read yet, whoever has sent the most loses.
type Connections struct {
	// Most may be open at once, and Strangers of those whose owner is not known, which
	// may have sent Unread bytes of headers together.
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
		Most: most, Strangers: min(mostStrangers, most/2), Unread: mostUnread, byOwner: map[string]*list.List{},
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
	bound := &boundConn{Conn: conn, all: l.all, weight: 1}
	bound.asking.Store(true)
	l.all.add(bound)
	return bound, nil
}

type boundConn struct {
	net.Conn
	all *Connections
	// asking: a stranger's, whose headers are awaited. It changes with all.mu held.
	asking atomic.Bool
	// owner, place and unread are guarded by all.mu; place is nil once it is closed.
	owner  string
	place  *list.Element
	unread int
	// weight is as how many bytes one counts.
	weight int
}

// Read implements net.Conn.
func (b *boundConn) Read(into []byte) (int, error) {
	n, err := b.Conn.Read(into)
	if n > 0 && b.asking.Load() {
		b.all.heard(b, n, false)
	}
	return n, err
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

// heard counts what a stranger has sent, and has it count for more by HTTP/2.
func (c *Connections) heard(b *boundConn, n int, by2 bool) {
	c.mu.Lock()
	if !b.asking.Load() || b.place == nil {
		c.mu.Unlock()
		return
	}
	n *= b.weight
	if by2 && b.weight != compressed {
		n += b.unread * (compressed - b.weight)
		b.weight = compressed
	}
	b.unread += n
	c.unread += n
	var surplus *boundConn
	if c.unread > c.Unread {
		surplus = b
		for e := c.byOwner[""].Front(); e != nil; e = e.Next() {
			if other := e.Value.(*boundConn); other.unread > surplus.unread {
				surplus = other
			}
		}
		c.remove(surplus)
	}
	c.mu.Unlock()
	if surplus != nil {
		c.logger.Warn("strangers send too much: who has sent the most is cut off", zap.Stringer("remote", surplus.RemoteAddr()))
		_ = surplus.Conn.Close()
	}
}

// await starts or ends the counting of what b's owner sends.
func (c *Connections) await(b *boundConn, headers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread -= b.unread
	b.unread = 0
	b.asking.Store(headers && b.owner == "" && b.place != nil)
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
	c.unread -= b.unread
	b.unread = 0
	if theirs.Len() == 0 && b.owner != "" {
		delete(c.byOwner, b.owner)
	}
}

type connectionKey struct{}

// Guard has an http.Server that serves on the listener tell whose its connections are
// and when they ask for something.
func (c *Connections) Guard(server *http.Server) {
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, ok := r.Context().Value(connectionKey{}).(*boundConn); ok && b.asking.Load() {
			c.await(b, false)
		}
		next.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, bare(conn))
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		b, ok := bare(conn).(*boundConn)
		switch {
		case !ok || state != http.StateIdle:
		case b.asking.Load(): // nothing was answered yet: so HTTP/2 begins
			c.heard(b, 0, true)
		default:
			c.await(b, true)
		}
	}
}

// bare is a connection without its encryption.
func bare(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
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
		b.asking.Store(false)
	}
}
