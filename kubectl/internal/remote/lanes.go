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
	// maxLanes bounds the tunnels of one port-forward. Connections beyond that share them.
	maxLanes = 32
	// maxIdleLanes is how many tunnels wait for the next connection.
	maxIdleLanes = 4
)

// lanes is a Dialer whose connection carries each forwarded connection over a tunnel of its
// own. In one tunnel, what the user's program does not read of one connection holds up all
// others, because one loop reads the streams of SPDY. A tunnel whose connection has ended in
// order carries the next one, so that connections one after the other need one tunnel.
type lanes struct {
	config  *clientrest.Config
	address *url.URL
}

// Dial opens the first tunnel.
func (l lanes) Dial(protocols ...string) (httpstream.Connection, string, error) {
	dial := func() (httpstream.Connection, string, error) {
		dialer, err := tunnelTo(l.config, l.address)
		if err != nil {
			return nil, "", err
		}
		return dialer.Dial(protocols...)
	}
	first, protocol, err := dial()
	if err != nil {
		return nil, "", err
	}
	r := &road{
		dial: func() (httpstream.Connection, error) {
			tunnel, _, err := dial()
			return tunnel, err
		},
		carrying: map[string]*lane{},
		closed:   make(chan bool),
		dialing:  1,
	}
	r.dialed(first)
	return r, protocol, nil
}

var errLost = errors.New("lost connection to pod")

// road is a connection over any number of tunnels. It is lost when the last of them is.
type road struct {
	dial func() (httpstream.Connection, error)

	mu       sync.Mutex
	lanes    []*lane
	carrying map[string]*lane // by the id that the two streams of a forwarded connection have
	dialing  int              // tunnels that will be lanes, or not
	closed   chan bool
	over     bool
}

// lane is one tunnel, with the streams in it.
type lane struct {
	httpstream.Connection
	users int // the streams, and those that are being made
	rides []*ride
}

// ride is one stream of a forwarded connection.
type ride struct {
	httpstream.Stream
	road  *road
	lane  *lane
	ended atomic.Bool // by the other side
	sends atomic.Int32
}

// Read notes that the other side has ended the stream.
func (s *ride) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if errors.Is(err, io.EOF) {
		s.ended.Store(true)
	}
	return n, err
}

// Write notes that something is being sent, which may wait.
func (s *ride) Write(p []byte) (int, error) {
	s.sends.Add(1)
	defer s.sends.Add(-1)
	return s.Stream.Write(p)
}

// Reset gives up the tunnel, too, if the stream has not ended: what is still on its way in it may
// be more than anybody takes.
func (s *ride) Reset() error {
	if s.ended.Load() && s.sends.Load() == 0 || !s.road.abandon(s.lane) {
		return s.Stream.Reset()
	}
	return nil
}

// CreateStream opens a stream in the tunnel of the forwarded connection that it belongs to.
func (r *road) CreateStream(headers http.Header) (httpstream.Stream, error) {
	l, err := r.take(headers.Get(corev1.PortForwardRequestIDHeader))
	if err != nil {
		return nil, err
	}
	stream, err := l.CreateStream(headers)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.leave(l)
		return nil, err
	}
	s := &ride{Stream: stream, road: r, lane: l}
	l.rides = append(l.rides, s)
	return s, nil
}

// take returns the tunnel for a forwarded connection, a new one if all are in use.
func (r *road) take(connection string) (*lane, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.carrying[connection]
	if l == nil {
		l = r.leastUsed()
	}
	if r.carrying[connection] == nil && (l == nil || l.users > 0) && len(r.lanes)+r.dialing < maxLanes && !r.over {
		r.dialing++
		r.mu.Unlock()
		tunnel, err := r.dial()
		r.mu.Lock()
		if err != nil {
			r.dialing--
			l = r.leastUsed()
			r.endIfLost()
		} else {
			l = r.add(tunnel)
		}
	}
	if l == nil || r.over {
		return nil, errLost
	}
	l.users++
	r.carrying[connection] = l
	return l, nil
}

// leastUsed is nil if there is no tunnel. The road's mu is held, as by all below that say
// nothing else.
func (r *road) leastUsed() (least *lane) {
	for _, l := range r.lanes {
		if least == nil || l.users < least.users {
			least = l
		}
	}
	return least
}

// dialed takes a new tunnel, and locks mu itself.
func (r *road) dialed(tunnel httpstream.Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(tunnel)
}

func (r *road) add(tunnel httpstream.Connection) *lane {
	r.dialing--
	l := &lane{Connection: tunnel}
	if r.over {
		go func() { _ = tunnel.Close() }()
		return l
	}
	r.lanes = append(r.lanes, l)
	go func() {
		<-tunnel.CloseChan()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.remove(l)
		r.endIfLost()
	}()
	return l
}

func (r *road) remove(l *lane) {
	r.lanes = slices.DeleteFunc(r.lanes, func(other *lane) bool { return other == l })
}

func (r *road) endIfLost() {
	if len(r.lanes) == 0 && r.dialing == 0 && !r.over {
		r.over = true
		close(r.closed)
	}
}

// abandon closes a tunnel, unless others use it, and replaces the last one, which shows
// whether the pod is still there. It locks mu itself.
func (r *road) abandon(l *lane) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range l.rides {
		if other.Headers().Get(corev1.PortForwardRequestIDHeader) != l.rides[0].Headers().Get(corev1.PortForwardRequestIDHeader) {
			return false
		}
	}
	r.remove(l)
	if len(r.lanes) == 0 && r.dialing == 0 && !r.over {
		r.dialing++
		go r.replace()
	}
	for _, s := range l.rides {
		go func() { _ = s.Stream.Reset() }() // which ends its reader before it writes, and may then wait
	}
	go func() { _ = l.Close() }()
	return true
}

func (r *road) replace() {
	tunnel, err := r.dial()
	if err == nil {
		r.dialed(tunnel)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialing--
	r.endIfLost()
}

// leave notes that a stream of a tunnel has gone.
func (r *road) leave(l *lane) {
	if l.users--; l.users > 0 {
		return
	}
	for connection, of := range r.carrying {
		if of == l {
			delete(r.carrying, connection)
		}
	}
	idle := 0
	for _, other := range r.lanes {
		if other.users == 0 {
			idle++
		}
	}
	if idle > maxIdleLanes {
		r.remove(l)
		go func() { _ = l.Close() }()
	}
}

// RemoveStreams forgets streams that have ended.
func (r *road) RemoveStreams(streams ...httpstream.Stream) {
	for _, stream := range streams {
		s, ok := stream.(*ride)
		if !ok {
			continue // nil: it could not be made
		}
		s.lane.RemoveStreams(s.Stream)
		r.mu.Lock()
		s.lane.rides = slices.DeleteFunc(s.lane.rides, func(other *ride) bool { return other == s })
		r.leave(s.lane)
		r.mu.Unlock()
	}
}

// Close closes all tunnels.
func (r *road) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		go func() { _ = l.Close() }() // which waits for what is in the way
	}
	r.lanes = nil
	r.endIfLost()
	return nil
}

// CloseChan is closed when the last tunnel has gone.
func (r *road) CloseChan() <-chan bool { return r.closed }

// SetIdleTimeout applies to the tunnels that there are.
func (r *road) SetIdleTimeout(timeout time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		l.SetIdleTimeout(timeout)
	}
}
