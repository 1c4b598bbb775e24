package cri

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// loud is a runtime whose commands write a lot. It counts the bytes that its clients let
// it send.
type loud struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	output []byte
	ended  chan struct{}
	sent   atomic.Int64
}

func (l *loud) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{}, nil
}

func (l *loud) ExecSync(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	l.ended <- struct{}{}
	return &runtimeapi.ExecSyncResponse{Stdout: l.output, ExitCode: 3}, nil
}

type countingListener struct {
	net.Listener
	sent *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.sent}, err
}

type countingConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

func (l *loud) client(t *testing.T) *Client {
	socket := filepath.Join(t.TempDir(), "cri.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, l)
	go server.Serve(countingListener{listener, &l.sent}) //nolint:errcheck // ends with Stop
	t.Cleanup(server.Stop)
	c, err := New(socket, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Probes may have hundreds of containers write megabytes at the same time. The kubelet
// has room for one such answer, the others stay in the runtime; and other calls don't
// wait for them.
func TestLongOutputsAreReceivedOneAtATime(t *testing.T) {
	const commands = 10
	l := &loud{output: make([]byte, 4<<20), ended: make(chan struct{})}
	c := l.client(t)
	c.receiving <- struct{}{} // as if one were being received
	var all sync.WaitGroup
	for range commands {
		all.Go(func() {
			result, err := c.ExecSync(t.Context(), "c", []string{"cat"}, time.Minute)
			if err != nil || len(result.Stdout) != len(l.output) || result.ExitCode != 3 {
				t.Errorf("%d bytes, code %d, %v", len(result.Stdout), result.ExitCode, err)
			}
		})
	}
	for range commands {
		<-l.ended
	}
	for range commands {
		if _, err := c.Version(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.sent.Load(); n > commands*streamWindow+connectionWindow {
		t.Errorf("%d bytes were sent of answers that nobody receives yet", n)
	}
	<-c.receiving
	all.Wait()
	if n := l.sent.Load(); n < int64(commands*len(l.output)) {
		t.Errorf("%d bytes were sent in the end", n)
	}
}

func TestWhoWaitsToReceiveGivesUpInTime(t *testing.T) {
	l := &loud{output: []byte("out"), ended: make(chan struct{}, 1)}
	c := l.client(t)
	c.receiving <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := c.ExecSync(ctx, "c", []string{"true"}, time.Minute)
		result <- err
	}()
	<-l.ended
	cancel()
	if err := <-result; err == nil {
		t.Error("no error")
	}
}

func TestTheBeginningOfOutputs(t *testing.T) {
	r := ExecResult{Stdout: []byte("out"), Stderr: []byte("error")}
	for limit, want := range map[int]string{0: "", 2: "ou", 3: "out", 5: "outer", 8: "outerror", 100: "outerror"} {
		if got := r.Output(limit); !bytes.Equal(got, []byte(want)) {
			t.Errorf("%d bytes of it are %q, want %q", limit, got, want)
		}
	}
}
