package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Ports are the ports to forward, and where messages go.
type Ports struct {
	// Listen are the local addresses; each of Ports is LOCAL:REMOTE.
	Listen, Ports []string
	Out, Err      io.Writer
}

// Forward listens on local addresses and carries connections to a pod's ports,
// until the context ends.
func Forward(ctx context.Context, config *clientrest.Config, address *url.URL, p Ports) error {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return fmt.Errorf("preparing the connection: %w", err)
	}
	direct := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, config)
	if err != nil {
		return fmt.Errorf("preparing the connection: %w", err)
	}
	dialer := portforward.NewFallbackDialerForStreaming(tunnel, direct, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, p.Listen, p.Ports, make(chan struct{}), p.Out, p.Err)
	if err != nil {
		return err
	}
	return forwarder.ForwardPorts()
}
