package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"kctl/kubectl/internal/printer"
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
	ctx = klog.NewContext(ctx, logr.New(lines{p.Err}))
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer{config, address}, p.Listen, p.Ports, make(chan struct{}),
		p.Out, p.Err)
	if err != nil {
		return err
	}
	return forwarder.ForwardPorts()
}

// tunnelTo returns a dialer for one tunnel: client-go's keep the connection that they make, and so
// can't be used twice at a time.
func tunnelTo(config *clientrest.Config, address *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	direct := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	return portforward.NewFallbackDialerForStreaming(tunnel, direct, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// lines prints what client-go logs of a connection's end for the user: the message, what
// it is about, and the error, and not where in client-go's source that is.
type lines struct{ out io.Writer }

func (l lines) Error(err error, message string, about ...any) {
	text := message
	for i := 0; i+1 < len(about); i += 2 {
		text += fmt.Sprintf(", %v %v", about[i], about[i+1])
	}
	if err != nil { // of a panic, it is not given
		text += ": " + strings.TrimSpace(printer.Visible(err.Error()))
	}
	fmt.Fprintln(l.out, text)
}

// Init has nothing to prepare.
func (l lines) Init(logr.RuntimeInfo) {}

// Enabled is for information, of which none is for the user.
func (l lines) Enabled(int) bool { return false }

// Info is never called, since it is not enabled.
func (l lines) Info(int, string, ...any) {}

// WithValues and WithName name client-go's parts, which the user does not know.
func (l lines) WithValues(...any) logr.LogSink { return l }

// WithName does as WithValues.
func (l lines) WithName(string) logr.LogSink { return l }
