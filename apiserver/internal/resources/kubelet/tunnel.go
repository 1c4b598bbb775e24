package kubelet

import (
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

	"kctl/proto/upgrade"
)

// tunnel upgrades a connection to the kubelet, and then takes out of a
// WebSocket's messages, and puts into them, what the two say on it.
func (c *Client) tunnel(w http.ResponseWriter, r *http.Request, to *url.URL) error {
	if !slices.Contains(protocolsOf(r), portforward.WebsocketsSPDYTunnelingPortForwardV1) {
		return dialError(fmt.Errorf("only %s can be tunnelled", portforward.WebsocketsSPDYTunnelingPortForwardV1))
	}
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodPost, to.String(), nil)
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
		return passOn(w, r, answer)
	}
	defer answer.Body.Close()
	backend, ok := answer.Body.(io.ReadWriteCloser)
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
			upgrade.Carry(r.Context(), tunnelled{socket}, backend)
		},
	}.ServeHTTP(upgrade.Linger(r.Context(), w), r)
	return nil
}

// tunnelled says goodbye in WebSocket's words.
type tunnelled struct{ *websocket.Conn }

func (t tunnelled) CloseWrite() error { return t.WriteClose(closeNormal) }

// closeNormal is RFC 6455's code for an end as it should be.
const closeNormal = 1000
