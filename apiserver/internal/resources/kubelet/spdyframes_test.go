package kubelet

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// between returns the API server's connection to a kubelet, and the kubelet's.
func between(t *testing.T, opened httpstream.NewStreamHandler) (client, kubelet httpstream.Connection) {
	t.Helper()
	ours, theirs := net.Pipe()
	kubelet, err := spdy.NewServerConnection(theirs, opened)
	if err != nil {
		t.Fatal(err)
	}
	client, err = spdy.NewClientConnection(&netConn{connection: ours, frames: newSPDYFrames(ours)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = ours.Close(), client.Close(), kubelet.Close() })
	return client, kubelet
}

// TestAKubeletThatOpensStreams loses its connection: nobody would read them, and each takes memory.
func TestAKubeletThatOpensStreams(t *testing.T) {
	client, kubelet := between(t, func(httpstream.Stream, <-chan struct{}) error { return nil })
	if _, err := client.CreateStream(http.Header{}); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = kubelet.CreateStream(http.Header{}) }()
	<-client.CloseChan()
}

// TestLargeFramesOfAKubelet arrive whole, with their end, in parts.
func TestLargeFramesOfAKubelet(t *testing.T) {
	payload := make([]byte, 5*maxDataFrame+7)
	for i := range payload {
		payload[i] = byte(rand.IntN(256))
	}
	client, _ := between(t, func(stream httpstream.Stream, _ <-chan struct{}) error {
		go func() {
			for _, size := range []int{1, maxDataFrame, maxDataFrame + 1, len(payload)} {
				_, _ = stream.Write(payload[:size])
			}
			_ = stream.Close()
		}()
		return nil
	})
	stream, err := client.CreateStream(http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(stream)
	want := bytes.Join([][]byte{payload[:1], payload[:maxDataFrame], payload[:maxDataFrame+1], payload}, nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
	}
}

// TestDataIsSplit: a frame that ends its stream ends it with its last part only.
func TestDataIsSplit(t *testing.T) {
	frame := append([]byte{0, 0, 0, 3, spdyFin, 0, 0x80, 1}, make([]byte, maxDataFrame+1)...)
	got, err := io.ReadAll(newSPDYFrames(bytes.NewReader(frame)))
	first := append([]byte{0, 0, 0, 3, 0, 0, 0x80, 0}, make([]byte, maxDataFrame)...)
	if want := append(first, 0, 0, 0, 3, spdyFin, 0, 0, 1, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := io.ReadAll(newSPDYFrames(bytes.NewReader(frame[:5]))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a header that is cut short: %v", err)
	}
}
