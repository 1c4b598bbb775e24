package kubeletclient

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// A kubelet that does not read its stream does not hold up the stream's end.
func TestABackendThatTakesNothingIsClosed(t *testing.T) {
	ours, theirs := net.Pipe()
	kubelet := &deaf{Conn: theirs, closed: make(chan struct{})}
	served, err := spdy.NewServerConnection(kubelet, func(httpstream.Stream, <-chan struct{}) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	over := &netConn{connection: ours, frames: newSPDYFrames(ours)}
	connection, err := spdy.NewClientConnection(over)
	if err != nil {
		t.Fatal(err)
	}
	b := &spdyConnection{connection, over}
	stream, err := b.open(t.Context(), http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	kubelet.hears.Store(-1) // after the current read
	talked, more := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		_, err := io.Copy(stream, endless{more})
		talked <- err
	}()
	<-more
	_ = b.Close()
	if err := <-talked; err == nil {
		t.Error("it was all taken")
	}
	close(kubelet.closed)
	_, _ = theirs.Close(), served.Close()
}

// deaf stops reading once hears has counted up to 0.
type deaf struct {
	net.Conn
	hears  atomic.Int64
	closed chan struct{}
}

func (d *deaf) Read(p []byte) (int, error) {
	if d.hears.Load() < 0 && d.hears.Add(1) == 0 {
		<-d.closed
		return 0, io.EOF
	}
	return d.Conn.Read(p)
}

// endless reports when more of it is read.
type endless struct{ more chan struct{} }

func (e endless) Read(p []byte) (int, error) {
	select {
	case e.more <- struct{}{}:
	default:
	}
	return len(p), nil
}
