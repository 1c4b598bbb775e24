package remote

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// end is a tunnel without a pod at the other side, which does what real ones do at moments that
// can't be chosen there.
type end struct {
	httpstream.Connection
	once   sync.Once
	closed chan bool
	create func() error // nil: makes streams
}

func newEnd() *end { return &end{closed: make(chan bool)} }

func (e *end) CreateStream(headers http.Header) (httpstream.Stream, error) {
	if e.create != nil {
		if err := e.create(); err != nil {
			return nil, err
		}
	}
	return endStream{headers: headers}, nil
}

func (e *end) CloseChan() <-chan bool { return e.closed }

func (e *end) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

func (e *end) RemoveStreams(...httpstream.Stream) {}

func (e *end) isClosed() bool {
	synctest.Wait()
	select {
	case <-e.closed:
		return true
	default:
		return false
	}
}

type endStream struct {
	httpstream.Stream
	headers http.Header
}

func (s endStream) Headers() http.Header { return s.headers }
func (s endStream) Reset() error         { return nil }
func (s endStream) Read([]byte) (int, error) {
	return 0, io.EOF
}

// over are tunnels of which first is open, and dial opens the others.
func over(first *end, dial func() (httpstream.Connection, error)) *tunnels {
	t := &tunnels{dial: dial, carrying: map[string]*tunnel{}, closed: make(chan bool), dialing: 1}
	t.dialed(first)
	return t
}

func headersOf(connection int) http.Header {
	headers := http.Header{}
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(connection))
	return headers
}

func mustCreate(t *testing.T, in *tunnels, connection int) httpstream.Stream {
	t.Helper()
	s, err := in.CreateStream(headersOf(connection))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What ends a port-forward ends it at once, and the tunnel that is being opened for a connection.
func TestTheEndWhileATunnelIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, late, goOn := newEnd(), newEnd(), make(chan struct{})
		in := over(first, func() (httpstream.Connection, error) {
			<-goOn
			return late, nil
		})
		mustCreate(t, in, 0)
		waiting := make(chan error, 1)
		go func() {
			_, err := in.CreateStream(headersOf(1))
			waiting <- err
		}()
		synctest.Wait()
		_ = in.Close()
		select {
		case <-in.CloseChan():
		default:
			t.Error("it goes on")
		}
		if err := <-waiting; !errors.Is(err, errLost) {
			t.Errorf("the connection that waited: %v", err)
		}
		close(goOn)
		if !first.isClosed() || !late.isClosed() {
			t.Errorf("closed: the first %v, the late one %v", first.isClosed(), late.isClosed())
		}
	})
}

// A connection whose tunnel is not opened in time shares another's.
func TestATunnelThatIsNotOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, late, goOn := newEnd(), newEnd(), make(chan struct{})
		in := over(first, func() (httpstream.Connection, error) {
			<-goOn
			return late, nil
		})
		mustCreate(t, in, 0)
		began := time.Now()
		s := mustCreate(t, in, 1)
		if took := time.Since(began); took != openWithin || s.(*stream).tunnel.Connection != first {
			t.Errorf("after %s, in %v", took, s)
		}
		close(goOn)
		if !late.isClosed() {
			t.Error("nobody uses the tunnel that comes late, and it stays open")
		}
		_ = in.Close()
	})
}

// A tunnel in which no stream can be made is not what the next connection gets, if there is another.
func TestATunnelThatIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newEnd(), newEnd()
		in := over(first, func() (httpstream.Connection, error) { return second, nil })
		streams := []httpstream.Stream{mustCreate(t, in, 0), mustCreate(t, in, 1)}
		in.RemoveStreams(streams...)
		first.create = func() error { return errors.New("Timeout occurred") }
		if _, err := in.CreateStream(headersOf(2)); err == nil {
			t.Error("a stream was made in a dead tunnel")
		}
		s := mustCreate(t, in, 3)
		if s.(*stream).tunnel.Connection != second || !first.isClosed() {
			t.Error("the dead tunnel is used again, or open")
		}
		in.RemoveStreams(s)
		second.create = first.create
		_, _ = in.CreateStream(headersOf(4))
		if second.isClosed() {
			t.Error("the last tunnel, which shows whether the pod is there, was given up")
		}
		_ = in.Close()
	})
}

// Connections that share a tunnel do not disturb each other, and leave nothing behind.
func TestConnectionsInOneTunnel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		only := newEnd()
		in := over(only, func() (httpstream.Connection, error) { return nil, errors.New("no more") })
		stays := mustCreate(t, in, 0)
		for i := range 100 {
			in.RemoveStreams(mustCreate(t, in, 1+i), nil)
		}
		if len(in.carrying) != 1 {
			t.Errorf("%d connections are remembered", len(in.carrying))
		}
		goOn := make(chan struct{})
		only.create = func() error { <-goOn; return nil }
		made := make(chan error, 1)
		go func() {
			_, err := in.CreateStream(headersOf(200))
			made <- err
		}()
		synctest.Wait()
		_ = stays.Reset() // while the other's stream is being made
		if only.isClosed() {
			t.Error("the tunnel was closed under another connection")
		}
		close(goOn)
		if err := <-made; err != nil {
			t.Error(err)
		}
		_ = in.Close()
	})
}
