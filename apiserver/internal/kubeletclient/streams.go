package kubeletclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"kctl/proto/upgrade"
)

// streamIdleTimeout is after how long idle streams into containers are ended;
// upstream's default.
const streamIdleTimeout = 4 * time.Hour

// Streams are those of a container that a client wants.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }

// Exec forwards an exec or attach to the kubelet. Not all runtimes support
// WebSocket, so these are translated to SPDY (KEP-4006). The kubelet's answer
// is passed to the client; an error means that nothing has been written.
func (c *Client) Exec(w http.ResponseWriter, r *http.Request, to *url.URL, wanted Streams) error {
	if !wsstream.IsWebSocketRequest(r) || !hasErrorChannel(r) {
		return c.forward(w, r, to)
	}
	backend, refused, err := c.dialSPDY(r.Context(), to, remotecommand.StreamProtocolV4Name)
	if err != nil {
		return err
	}
	if refused != nil {
		return forwardRefusal(w, r, refused)
	}
	defer backend.Close()
	// A kubelet that does not answer streams must not delay the end.
	defer context.AfterFunc(r.Context(), func() { _ = backend.Close() })()
	streams, err := openStreams(r.Context(), backend, wanted)
	if err != nil {
		return dialError(err)
	}
	front := wsstream.NewConn(channelProtocols(wanted))
	front.SetIdleTimeout(streamIdleTimeout)
	ctx, w := upgrade.Linger(r.Context(), w)
	// The library logs each frame for a channel that the client has closed.
	quiet := r.WithContext(klog.NewContext(r.Context(), klog.Logger{}))
	_, channels, err := front.Open(framesWriter{w}, quiet)
	if err != nil {
		return nil // the client has the answer, or is gone
	}
	defer front.Close()
	copyStreams(ctx, channels, streams)
	_ = backend.Close() // before the client, which may take its time to hang up
	return nil
}

// hasErrorChannel reports whether the client uses a protocol version with an error
// channel. Older ones are left to the runtime.
func hasErrorChannel(r *http.Request) bool {
	for _, protocol := range protocolsOf(r) {
		if _, ok := channelProtocols(Streams{})[protocol]; ok {
			return true
		}
	}
	return false
}

// base64Prefix is that of protocols for clients that support only text.
const base64Prefix = "base64."

func channelProtocols(wanted Streams) map[string]wsstream.ChannelProtocolConfig {
	channel := func(on bool, kind wsstream.ChannelType) wsstream.ChannelType {
		if on {
			return kind
		}
		return wsstream.IgnoreChannel
	}
	channels := []wsstream.ChannelType{
		remotecommand.StreamStdIn:  channel(wanted.Stdin, wsstream.ReadChannel),
		remotecommand.StreamStdOut: channel(wanted.Stdout, wsstream.WriteChannel),
		remotecommand.StreamStdErr: channel(wanted.Stderr && !wanted.TTY, wsstream.WriteChannel),
		remotecommand.StreamErr:    wsstream.WriteChannel,
		// Always read: that is how the client's disconnection is noticed.
		remotecommand.StreamResize: wsstream.ReadChannel,
	}
	return map[string]wsstream.ChannelProtocolConfig{
		remotecommand.StreamProtocolV5Name:                {Binary: true, Channels: channels},
		remotecommand.StreamProtocolV4Name:                {Binary: true, Channels: channels},
		base64Prefix + remotecommand.StreamProtocolV4Name: {Binary: false, Channels: channels},
	}
}

// pingPeriod keeps idle connections alive in middleboxes.
const pingPeriod = 5 * time.Second

// maxAnswer bounds how much of a refusal is passed on.
const maxAnswer = 64 << 10

// forwardRefusal answers r with the kubelet's refusal.
func forwardRefusal(w http.ResponseWriter, r *http.Request, answer *http.Response) error {
	defer answer.Body.Close()
	if err := CheckUpgraded(r, answer); err != nil {
		return err
	}
	if kind := answer.Header.Get("Content-Type"); kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, io.LimitReader(answer.Body, maxAnswer)) // either side may be gone
	return nil
}

// openStreams opens the protocol's streams, ordered by channel number.
func openStreams(ctx context.Context, connection *spdyConnection, wanted Streams) (map[int]httpstream.Stream, error) {
	streams := map[int]httpstream.Stream{}
	for _, s := range []struct {
		channel int
		kind    string
		on      bool
	}{
		{remotecommand.StreamErr, corev1.StreamTypeError, true},
		{remotecommand.StreamStdIn, corev1.StreamTypeStdin, wanted.Stdin},
		{remotecommand.StreamStdOut, corev1.StreamTypeStdout, wanted.Stdout},
		{remotecommand.StreamStdErr, corev1.StreamTypeStderr, wanted.Stderr && !wanted.TTY},
		{remotecommand.StreamResize, corev1.StreamTypeResize, wanted.TTY},
	} {
		if !s.on {
			continue
		}
		stream, err := connection.open(ctx, http.Header{corev1.StreamType: {s.kind}})
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", s.kind, err)
		}
		streams[s.channel] = stream
	}
	// Streams that are only read are closed for writing. That fails if the
	// container is already gone; its output can still be read.
	for _, channel := range []int{remotecommand.StreamErr, remotecommand.StreamStdOut, remotecommand.StreamStdErr} {
		if stream := streams[channel]; stream != nil {
			_ = stream.Close()
		}
	}
	return streams, nil
}

// copyStreams copies between the two until the container's output ends, or ctx does. If
// the client is gone, its last input still goes to the container. The caller
// then closes both connections, which ends the remaining copies.
func copyStreams(ctx context.Context, channels []io.ReadWriteCloser, streams map[int]httpstream.Stream) {
	told := copyOut(channels, streams)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		to := io.Discard
		if stream := streams[remotecommand.StreamResize]; stream != nil {
			to = stream
		}
		_, _ = io.Copy(to, channels[remotecommand.StreamResize])
	}()
	if stdin := streams[remotecommand.StreamStdIn]; stdin != nil {
		go func() {
			_, _ = io.Copy(stdin, channels[remotecommand.StreamStdIn])
			_ = stdin.Close() // end of input
		}()
	}
	select {
	case <-told:
		return
	case <-ctx.Done():
		return
	case <-gone:
	}
	late := time.NewTimer(upgrade.Patience)
	defer late.Stop()
	select {
	case <-told:
	case <-ctx.Done():
	case <-late.C:
	}
}

// copyOut returns a channel that is closed when all of the container's output
// has been written and its streams have ended, with their connection or before
// it.
func copyOut(channels []io.ReadWriteCloser, streams map[int]httpstream.Stream) <-chan struct{} {
	told := make(chan struct{})
	var telling sync.WaitGroup
	for channel, stream := range streams {
		switch channel {
		case remotecommand.StreamErr, remotecommand.StreamStdOut, remotecommand.StreamStdErr:
			telling.Go(func() { _, _ = io.Copy(channels[channel], stream) })
		default:
			// Nothing is expected here, but unread data would block the others.
			go func() { _, _ = io.Copy(io.Discard, stream) }()
		}
	}
	go func() {
		telling.Wait()
		close(told)
	}()
	return told
}

// PortForward forwards a port-forward to the kubelet. For a client that tunnels
// SPDY through a WebSocket (KEP-4006), the bytes go on over an upgraded
// connection.
func (c *Client) PortForward(w http.ResponseWriter, r *http.Request, to *url.URL) error {
	if !wsstream.IsWebSocketRequestWithTunnelingProtocol(r) {
		return c.forward(w, r, to)
	}
	return c.tunnel(w, r, to)
}

func protocolsOf(r *http.Request) []string {
	var out []string
	for _, header := range r.Header.Values("Sec-Websocket-Protocol") {
		for protocol := range strings.SplitSeq(header, ",") {
			out = append(out, strings.TrimSpace(protocol))
		}
	}
	return out
}
