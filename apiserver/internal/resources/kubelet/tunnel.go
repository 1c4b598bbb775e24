package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// tunnel upgrades a connection to the kubelet, and then takes out of a
// WebSocket's messages, and puts into them, what the two say on it.
func (c *Client) tunnel(w http.ResponseWriter, r *http.Request, to *url.URL) error {
	if !slices.Contains(protocolsOf(r), portforward.WebsocketsSPDYTunnelingPortForwardV1) {
		return dialError(fmt.Errorf("only %s can be tunnelled", portforward.WebsocketsSPDYTunnelingPortForwardV1))
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), nil)
	if err != nil {
		return dialError(err)
	}
	ask.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	ask.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	ask.Header.Set(httpstream.HeaderProtocolVersion, portforward.PortForwardV1Name)
	answer, err := c.transport.RoundTrip(ask)
	if err != nil {
		return dialError(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		passOn(w, answer)
		return nil
	}
	defer answer.Body.Close()
	backend, ok := answer.Body.(io.ReadWriter)
	if !ok {
		return dialError(errors.New("the kubelet's connection can't be written to"))
	}
	websocket.Server{
		Handshake: func(config *websocket.Config, _ *http.Request) error {
			config.Protocol = []string{portforward.WebsocketsSPDYTunnelingPortForwardV1}
			return nil
		},
		Handler: func(socket *websocket.Conn) {
			socket.PayloadType = websocket.BinaryFrame
			carry(ctx, socket, backend)
		},
	}.ServeHTTP(w, r)
	return nil
}

// carry copies both ways until one way ends. The caller closes both ends, which
// ends the other.
func carry(ctx context.Context, one, other io.ReadWriter) {
	ended := make(chan struct{}, 2)
	move := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // who is gone needs no error
		ended <- struct{}{}
	}
	go move(one, other)
	go move(other, one)
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
