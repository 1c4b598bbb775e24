package kubeletclient

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
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

// TestControlFrames: none is large, and none hides others that the library would find in it.
func TestControlFrames(t *testing.T) {
	frame := func(kind byte, length int) string {
		return string([]byte{0x80, 3, 0, kind, 0, byte(length >> 16), byte(length >> 8), byte(length)}) + strings.Repeat("\x01", length)
	}
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"reply":                       {frame(synReply, 18), false},
		"long reply":                  {frame(synReply, maxReply+1), true},
		"as many replies as streams":  {strings.Repeat(frame(synReply, 18), maxReplies), false},
		"more replies than streams":   {strings.Repeat(frame(synReply, 18), maxReplies+1), true},
		"reset":                       {frame(rstStream, 8), false},
		"reset that takes the next":   {frame(rstStream, 0), true},
		"ping":                        {frame(ping, 4), false},
		"ping with frames in it":      {frame(ping, 4+1<<20), true},
		"end":                         {frame(goAway, 8), false},
		"end with frames in it":       {frame(goAway, 16), true},
		"window":                      {frame(windowUpdate, 8), false},
		"window with frames in it":    {frame(windowUpdate, 16), true},
		"headers":                     {frame(headers, 18), true},
		"a kind that is not known":    {frame(42, 8), true},
		"stream":                      {frame(synStream, 28), true},
		"ping after a data frame":     {"\x00\x00\x00\x01\x00\x00\x00\x00" + frame(ping, 4), false},
		"data in a ping after a ping": {frame(ping, 4) + frame(ping, 5), true},
	} {
		got, err := io.ReadAll(newSPDYFrames(strings.NewReader(c.text)))
		if (err != nil) != c.refused || !c.refused && string(got) != c.text || !strings.HasPrefix(c.text, string(got)) {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(c.text), err)
		}
	}
	rest := frame(ping, 4)
	if got, err := io.ReadAll(newSPDYFrames(strings.NewReader(frame(settings, 1<<20) + rest))); err != nil || string(got) != rest {
		t.Errorf("settings, which the library would hold and ignore: %d bytes, %v", len(got), err)
	}
}

// TestAKubeletThatHidesAStream: the library reads four bytes of a ping, however long it is, and
// then the next frame.
func TestAKubeletThatHidesAStream(t *testing.T) {
	ours, theirs := net.Pipe()
	client, err := spdy.NewClientConnection(&netConn{connection: ours, frames: newSPDYFrames(ours)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = ours.Close(), client.Close(), theirs.Close() })
	go func() {
		_, _ = theirs.Write([]byte("\x80\x03\x00\x06\x00\x00\x00\x0c\x00\x00\x00\x02" + "\x80\x03\x00\x06\x00\x00\x00\x04"))
		_, _ = io.Copy(io.Discard, theirs)
	}()
	<-client.CloseChan()
}
