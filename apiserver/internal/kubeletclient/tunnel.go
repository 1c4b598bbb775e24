package kubeletclient

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/util/portforward"

	"kctl/proto/upgrade"
)

// tunnel upgrades a connection to the kubelet, and then carries its bytes in a
// WebSocket's messages.
func (c *Client) tunnel(w http.ResponseWriter, r *http.Request, to *url.URL) error {
	if !slices.Contains(protocolsOf(r), portforward.WebsocketsSPDYTunnelingPortForwardV1) {
		return dialError(fmt.Errorf("only %s can be tunnelled", portforward.WebsocketsSPDYTunnelingPortForwardV1))
	}
	backend, _, refused, err := c.upgradeTo(r.Context(), to, portforward.PortForwardV1Name)
	if err != nil {
		return err
	}
	if refused != nil {
		return forwardRefusal(w, r, refused)
	}
	defer backend.Close()
	ctx, w := upgrade.Linger(r.Context(), w)
	websocket.Server{
		Handshake: func(config *websocket.Config, _ *http.Request) error {
			config.Protocol = []string{portforward.WebsocketsSPDYTunnelingPortForwardV1}
			return nil
		},
		Handler: func(socket *websocket.Conn) {
			socket.PayloadType = websocket.BinaryFrame
			upgrade.Carry(ctx, tunnelled{socket}, backend)
		},
	}.ServeHTTP(w, r)
	return nil
}

// tunnelled ends with a WebSocket close message.
type tunnelled struct{ *websocket.Conn }

func (t tunnelled) CloseWrite() error { return t.WriteClose(closeNormal) }

// closeNormal is RFC 6455's code for a normal closure.
const closeNormal = 1000
