package remote

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
)

const (
	// maxTunnels bounds the tunnels of one port-forward. Connections beyond that share them.
	maxTunnels = 32
	// maxIdleTunnels is how many tunnels wait for the next connection.
	maxIdleTunnels = 4
	// openWithin is how long one may take to be opened, as long as client-go gives a stream.
	openWithin = 30 * time.Second
)

// dialer is a Dialer whose connection carries each forwarded connection over a tunnel of its
// own. In one tunnel, what the user's program does not read of one connection holds up all
// others, because one loop reads the streams of SPDY. A tunnel whose connection has ended in
// order carries the next one, so that connections one after the other need one tunnel.
type dialer struct {
	config  *clientrest.Config
	address *url.URL
}

// Dial opens the first tunnel.
func (d dialer) Dial(protocols ...string) (httpstream.Connection, string, error) {
	dial := func() (httpstream.Connection, string, error) {
		dialer, err := tunnelTo(d.config, d.address)
		if err != nil {
			return nil, "", err
		}
		return dialer.Dial(protocols...)
	}
	first, protocol, err := dial()
	if err != nil {
		return nil, "", err
	}
	t := &tunnels{
		dial: func() (httpstream.Connection, error) {
			opened, _, err := dial()
			return opened, err
		},
		carrying: map[string]*tunnel{},
		closed:   make(chan bool),
		dialing:  1,
	}
	t.dialed(first)
	return t, protocol, nil
}

var errLost = errors.New("lost connection to pod")

// tunnels is a connection over any number of tunnels. It is lost when the last of them is.
type tunnels struct {
	dial func() (httpstream.Connection, error)

	mu       sync.Mutex
	all      []*tunnel
	carrying map[string]*tunnel // by the id that the two streams of a forwarded connection have
	dialing  int                // those that are being opened
	closed   chan bool
	over     bool
}

// tunnel is one connection to the pod, with the streams in it.
type tunnel struct {
	httpstream.Connection
	users   int // the streams, and those that are being made
	streams []*stream
}

// stream is one stream of a forwarded connection.
type stream struct {
	httpstream.Stream
	of     *tunnels
	tunnel *tunnel
	// connection is the id of the forwarded connection. The headers have it, too, but they are
	// client-go's, which writes to them when it has this stream.
	connection string
	ended      atomic.Bool // by the other side
	sends      atomic.Int32
}

// Read notes that the other side has ended the stream.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if errors.Is(err, io.EOF) {
		s.ended.Store(true)
	}
	return n, err
}

// Write notes that something is being sent, which may wait.
func (s *stream) Write(p []byte) (int, error) {
	s.sends.Add(1)
	defer s.sends.Add(-1)
	return s.Stream.Write(p)
}

// Reset gives up the tunnel, too, if the stream has not ended: what is still on its way in it may
// be more than anybody takes.
func (s *stream) Reset() error {
	if s.ended.Load() && s.sends.Load() == 0 || !s.of.abandon(s.tunnel) {
		return s.Stream.Reset()
	}
	return nil
}

// CreateStream opens a stream in the tunnel of the forwarded connection that it belongs to.
func (t *tunnels) CreateStream(headers http.Header) (httpstream.Stream, error) {
	connection := headers.Get(corev1.PortForwardRequestIDHeader)
	one, err := t.take(connection)
	if err != nil {
		return nil, err
	}
	opened, err := one.CreateStream(headers)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.leave(one, connection)
		if one.users == 0 && len(t.all) > 1 {
			t.giveUp(one) // else it is the first that the next connection is given
		}
		return nil, err
	}
	s := &stream{Stream: opened, of: t, tunnel: one, connection: connection}
	one.streams = append(one.streams, s)
	return s, nil
}

// take returns the tunnel for a forwarded connection, a new one if all are in use.
func (t *tunnels) take(connection string) (*tunnel, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.carrying[connection]
	if one == nil {
		one = t.leastUsed()
	}
	if t.carrying[connection] == nil && (one == nil || one.users > 0) && len(t.all)+t.dialing < maxTunnels && !t.over {
		t.dialing++
		t.mu.Unlock()
		opened, err := t.open()
		t.mu.Lock()
		if err != nil {
			t.dialing--
			one = t.leastUsed()
			t.endIfLost()
		} else {
			one = t.add(opened)
		}
	}
	if one == nil || t.over {
		return nil, errLost
	}
	one.users++
	t.carrying[connection] = one
	return one, nil
}

// open opens a tunnel in time. Nothing ends client-go's dialing: a tunnel that comes too late is
// closed.
func (t *tunnels) open() (httpstream.Connection, error) {
	type result struct {
		opened httpstream.Connection
		err    error
	}
	results := make(chan result, 1)
	go func() {
		opened, err := t.dial()
		results <- result{opened, err}
	}()
	timer := time.NewTimer(openWithin)
	defer timer.Stop()
	select {
	case r := <-results:
		return r.opened, r.err
	case <-timer.C:
	case <-t.closed:
	}
	go func() {
		if r := <-results; r.err == nil {
			_ = r.opened.Close()
		}
	}()
	return nil, errLost
}

// leastUsed is nil if there is no tunnel. The mutex is held, as by all below that say
// nothing else.
func (t *tunnels) leastUsed() (least *tunnel) {
	for _, one := range t.all {
		if least == nil || one.users < least.users {
			least = one
		}
	}
	return least
}

// dialed takes a new tunnel, and locks it itself.
func (t *tunnels) dialed(opened httpstream.Connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(opened)
}

func (t *tunnels) add(opened httpstream.Connection) *tunnel {
	t.dialing--
	one := &tunnel{Connection: opened}
	if t.over {
		go func() { _ = opened.Close() }()
		return one
	}
	t.all = append(t.all, one)
	go func() {
		<-opened.CloseChan()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.remove(one)
		t.endIfLost()
	}()
	return one
}

func (t *tunnels) remove(one *tunnel) {
	t.all = slices.DeleteFunc(t.all, func(other *tunnel) bool { return other == one })
}

func (t *tunnels) endIfLost() {
	if len(t.all) == 0 && t.dialing == 0 {
		t.end()
	}
}

func (t *tunnels) end() {
	if !t.over {
		t.over = true
		close(t.closed)
	}
}

// abandon closes a tunnel, unless others use it, and replaces the last one, which shows
// whether the pod is still there. It locks it itself.
func (t *tunnels) abandon(one *tunnel) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.users > len(one.streams) { // another's stream is being made
		return false
	}
	for _, other := range one.streams {
		if other.connection != one.streams[0].connection {
			return false
		}
	}
	t.remove(one)
	if len(t.all) == 0 && t.dialing == 0 && !t.over {
		t.dialing++
		go t.replace()
	}
	for _, s := range one.streams {
		go func() { _ = s.Stream.Reset() }() // which ends its reader before it writes, and may then wait
	}
	go func() { _ = one.Close() }()
	return true
}

func (t *tunnels) replace() {
	opened, err := t.open()
	if err == nil {
		t.dialed(opened)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dialing--
	t.endIfLost()
}

// leave notes that a stream of a connection in a tunnel has gone, or could not be made. Such a
// connection opens no others.
func (t *tunnels) leave(one *tunnel, connection string) {
	delete(t.carrying, connection)
	if one.users--; one.users > 0 {
		return
	}
	idle := 0
	for _, other := range t.all {
		if other.users == 0 {
			idle++
		}
	}
	if idle > maxIdleTunnels {
		t.giveUp(one)
	}
}

// giveUp closes a tunnel that nobody uses.
func (t *tunnels) giveUp(one *tunnel) {
	t.remove(one)
	go func() { _ = one.Close() }()
}

// RemoveStreams forgets streams that have ended.
func (t *tunnels) RemoveStreams(streams ...httpstream.Stream) {
	for _, ended := range streams {
		s, ok := ended.(*stream)
		if !ok {
			continue // nil: it could not be made
		}
		s.tunnel.RemoveStreams(s.Stream)
		t.mu.Lock()
		s.tunnel.streams = slices.DeleteFunc(s.tunnel.streams, func(other *stream) bool { return other == s })
		t.leave(s.tunnel, s.connection)
		t.mu.Unlock()
	}
}

// Close closes all tunnels, also those that are still being opened.
func (t *tunnels) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.all {
		go func() { _ = one.Close() }() // which waits for what is in the way
	}
	t.all = nil
	t.end()
	return nil
}

// CloseChan is closed when the last tunnel has gone.
func (t *tunnels) CloseChan() <-chan bool { return t.closed }

// SetIdleTimeout applies to the tunnels that there are.
func (t *tunnels) SetIdleTimeout(timeout time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.all {
		one.SetIdleTimeout(timeout)
	}
}
