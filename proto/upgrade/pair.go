package upgrade

import (
	"io"
	"sync"
	"time"
)

// pair is the two connections of a proxy. Its ends never fail: one that can't
// be read counts as ended, and what can't be written is dropped, so that
// neither direction cuts the other off. Only time limits bound them.
type pair struct {
	client, backend io.ReadWriteCloser

	ending sync.Once // one of the two has left
	mu     sync.Mutex
	timers []*time.Timer
	closed chan struct{} // under mu
}

func newPair() *pair { return &pair{closed: make(chan struct{})} }

func (p *pair) setClient(c io.ReadWriteCloser) *clientEnd {
	p.client = c
	return &clientEnd{both: p, left: maxDiscarded}
}

func (p *pair) setBackend(c io.ReadWriteCloser) *backendEnd {
	p.backend = c
	return &backendEnd{both: p}
}

// endSoon is called when either side has left.
func (p *pair) endSoon() {
	p.ending.Do(func() { p.after(Patience, p.close) })
}

func (p *pair) after(wait time.Duration, what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isClosed() {
		p.timers = append(p.timers, time.AfterFunc(wait, what))
	}
}

func (p *pair) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

func (p *pair) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() {
		return
	}
	close(p.closed)
	for _, timer := range p.timers {
		timer.Stop()
	}
	_ = p.client.Close()
	_ = p.backend.Close()
}

// read reads from one of the two; on any error, it counts as ended.
func (p *pair) read(from io.Reader, into []byte) (int, error) {
	n, err := from.Read(into)
	if err != nil {
		p.endSoon()
		err = io.EOF
	}
	return n, err
}

// clientEnd is the end of the side that opened the connection.
type clientEnd struct {
	both *pair
	gone bool
	left int // of what is still read for a client that is gone
}

func (c *clientEnd) Read(p []byte) (int, error) { return c.both.read(c.both.client, p) }

// Write drops a little of what a client that is gone would have got, so that
// the backend can finish, and then waits for the connection to be closed: a
// backend that writes for ever must not be read for ever.
func (c *clientEnd) Write(p []byte) (int, error) {
	if !c.gone {
		if _, err := c.both.client.Write(p); err == nil {
			return len(p), nil
		}
		c.gone = true
		c.both.endSoon()
	}
	if c.left -= len(p); c.left < 0 {
		<-c.both.closed
	}
	return len(p), nil
}

// CloseWrite is called when the backend has sent everything.
func (c *clientEnd) CloseWrite() error {
	c.both.after(goodbyeTimeout, func() { _ = closeWrite(c.both.client) })
	return nil
}

// Close ends both connections.
func (c *clientEnd) Close() error {
	c.both.close()
	return nil
}

// backendEnd is the end to which the connection was passed on.
type backendEnd struct {
	both *pair
	gone bool
}

func (b *backendEnd) Read(p []byte) (int, error) { return b.both.read(b.both.backend, p) }

func (b *backendEnd) Write(p []byte) (int, error) {
	if !b.gone {
		if _, err := b.both.backend.Write(p); err == nil {
			return len(p), nil
		}
		b.gone = true
		b.both.endSoon()
	}
	return len(p), nil
}

// CloseWrite is called when the client has sent everything.
func (b *backendEnd) CloseWrite() error {
	_ = closeWrite(b.both.backend)
	return nil
}

// Close is called when the request is cancelled: the client still gets what has
// arrived, and gets no more time than that takes.
func (b *backendEnd) Close() error {
	b.both.after(goodbyeTimeout, b.both.close)
	return b.both.backend.Close()
}

// closeWrite tells the other side that no more will come, if that is possible
// without closing the connection.
func closeWrite(c io.Closer) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
