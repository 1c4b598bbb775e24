package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/httpstream"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forward listens on local addresses and carries connections to a pod's ports,
// until the context ends.
func Forward(ctx context.Context, config *clientrest.Config, address *url.URL, listen, ports []string, out, errOut io.Writer) error {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return fmt.Errorf("preparing the connection: %w", err)
	}
	direct := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	tunnel, err := portforward.NewSPDYOverWebsocketDialer(address, config)
	if err != nil {
		return fmt.Errorf("preparing the connection: %w", err)
	}
	dialer := portforward.NewFallbackDialer(tunnel, direct, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	forwarder, err := portforward.NewOnAddressesWithContext(ctx, dialer, listen, ports, make(chan struct{}), out, errOut)
	if err != nil {
		return err
	}
	return forwarder.ForwardPorts()
}
