package remote

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// much is more than the buffers between a pod and a program hold.
const much = 64 << 20

// forwarding is a port-forward to a pod that sends much at port 1, what it is sent at 2, and is
// gone after a connection to 3.
type forwarding struct {
	t       *testing.T
	tunnels atomic.Int32 // that were opened
	ports   map[string]string
	stop    context.CancelFunc
	ended   chan error
}

func (f *forwarding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, answered <-chan struct{}) error {
		go func() { <-answered; streams <- stream }()
		return nil
	})
	if connection == nil {
		return // a WebSocket, which the client tries first
	}
	defer connection.Close()
	f.tunnels.Add(1)
	for {
		select {
		case stream := <-streams:
			switch {
			case stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError:
				go stream.Close()
			case stream.Headers().Get(corev1.PortHeader) == "3":
				return
			default:
				go answer(stream)
			}
		case <-connection.CloseChan():
			return
		}
	}
}

// answer does what the pod does.
func answer(stream httpstream.Stream) {
	defer stream.Close()
	if stream.Headers().Get(corev1.PortHeader) == "2" {
		_, _ = io.Copy(stream, stream)
		return
	}
	var err error
	for sent, frame := 0, make([]byte, 32<<10); err == nil && sent < much; sent += len(frame) {
		_, err = stream.Write(frame)
	}
}

func startForwarding(t *testing.T) *forwarding {
	t.Helper()
	f := &forwarding{t: t, ports: map[string]string{}, ended: make(chan error, 1)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(t.Context())
	read, write := io.Pipe()
	go func() {
		defer write.Close()
		f.ended <- Forward(ctx, &clientrest.Config{Host: server.URL}, address,
			Ports{Listen: []string{"127.0.0.1"}, Ports: []string{":1", ":2", ":3"}, Out: write, Err: io.Discard})
	}()
	lines := bufio.NewScanner(read)
	for len(f.ports) < 3 && lines.Scan() {
		local, remote, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "Forwarding from "), " -> ")
		f.ports[remote] = local
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	return f
}

func (f *forwarding) connect(port string) net.Conn {
	f.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(f.t.Context(), "tcp", f.ports[port])
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// echo returns an error unless a connection carries something to the pod and back.
func echo(conn net.Conn) error {
	if _, err := io.WriteString(conn, "hello"); err != nil {
		return err
	}
	got := make([]byte, len("hello"))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		return fmt.Errorf("%q came back, %w", got, err)
	}
	return nil
}

func (f *forwarding) end() {
	f.t.Helper()
	f.stop()
	if err := <-f.ended; err != nil {
		f.t.Error(err)
	}
}

// A connection that nobody reads holds up no other, neither while it is open nor when it
// ends, and not the end of the port-forward. In one tunnel, the second one never gets all.
func TestAConnectionThatNobodyReads(t *testing.T) {
	f := startForwarding(t)
	unread := f.connect("1")
	if n, err := io.Copy(io.Discard, f.connect("1")); n != much || err != nil {
		t.Errorf("beside it: %d bytes of %d, %v", n, much, err)
	}
	_ = unread.Close()
	f.connect("1") // a second one that nobody reads
	if err := echo(f.connect("2")); err != nil {
		t.Errorf("after it: %v", err)
	}
	f.end()
}

// A hundred connections at once share the tunnels that there may be.
func TestTunnelsAreBounded(t *testing.T) {
	f := startForwarding(t)
	var group sync.WaitGroup
	errs := make(chan error, 100)
	for range cap(errs) {
		conn := f.connect("2")
		group.Go(func() { errs <- echo(conn) })
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n := f.tunnels.Load(); n > maxTunnels {
		t.Errorf("%d tunnels", n)
	}
	f.end()
}

// With its last tunnel, the port-forward ends.
func TestTheLastTunnelIsLost(t *testing.T) {
	f := startForwarding(t)
	f.connect("3")
	if err := <-f.ended; err == nil || !strings.Contains(err.Error(), "lost connection to pod") {
		t.Errorf("ended with %v", err)
	}
}
