package kubeletclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/rotation"
	"kctl/apiserver/internal/status"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/tracing"
	"kctl/proto/upgrade"
)

// defaultPort is the port of kubelets that report none.
const defaultPort = 10250

// defaultTimeout bounds the time to connect to a kubelet; upstream's.
const defaultTimeout = 5 * time.Second

// defaultAddressTypes is upstream's order of preference.
var defaultAddressTypes = []corev1.NodeAddressType{
	corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeInternalIP, corev1.NodeExternalDNS, corev1.NodeExternalIP,
}

// Options say how to reach kubelets, and with which credentials.
type Options struct {
	CertFile, KeyFile string // --kubelet-client-certificate, --kubelet-client-key
	// CAFile is --kubelet-certificate-authority; if it is empty, kubelets'
	// certificates are not verified, as by default in upstream.
	CAFile       string
	AddressTypes []corev1.NodeAddressType // nil for defaultAddressTypes
	Timeout      time.Duration            // of connecting; 0 for defaultTimeout
	Logger       *zap.Logger              // of files that need attention; not needed without any
}

// Client connects to kubelets.
type Client struct {
	verifying, nonVerifying *rotation.Transport // the same without verifying certificates
	guarded                 []*rotation.Transport
	types                   []corev1.NodeAddressType
}

// New returns a Client. Certificates and authorities that are replaced on disk are used at once.
func New(o Options) (*Client, error) { return newClient(o, clock.RealClock{}) }

func newClient(o Options, clock clock.PassiveClock) (*Client, error) {
	pair, err := pairOf(&o, clock)
	if err != nil {
		return nil, fmt.Errorf("kubelet client: %w", err)
	}
	c := &Client{types: o.AddressTypes}
	if len(c.types) == 0 {
		c.types = defaultAddressTypes
	}
	c.nonVerifying = newTransport(nil, pair, o.Timeout)
	if c.verifying = c.nonVerifying; o.CAFile != "" {
		authorities, err := daemon.ClientAuthorities("kubelet certificate authority", o.CAFile, clock, o.Logger)
		if err != nil {
			return nil, err
		}
		c.verifying = newTransport(authorities, pair, o.Timeout)
	}
	return c, nil
}

// Transport returns the transport for kubelets whose addresses allowed permits. It
// checks the address that is really connected to: a name may resolve differently than
// before. It must not be called while the client is in use.
func (c *Client) Transport(allowed func(net.IP) error) http.RoundTripper {
	t := withDialControl(c.verifying, allowed)
	c.guarded = append(c.guarded, t)
	return t
}

// Close drops idle connections.
func (c *Client) Close() {
	for _, t := range append([]*rotation.Transport{c.verifying, c.nonVerifying}, c.guarded...) {
		t.CloseIdleConnections()
	}
}

// noAddress is upstream's answer if a node has reported no suitable address.
func noAddress(node *core.Node) error {
	return status.WithoutReason(fmt.Sprintf("no preferred addresses found; known addresses: %v", node.Status.Addresses))
}

// URL is the URL of path at the node's kubelet.
func (c *Client) URL(node *core.Node, path string, query url.Values) (*url.URL, error) {
	address := ""
	for _, kind := range c.types {
		for _, a := range node.Status.Addresses {
			if a.Type == kind && address == "" {
				address = a.Address
			}
		}
	}
	if address == "" {
		return nil, noAddress(node)
	}
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port == 0 {
		port = defaultPort
	}
	return &url.URL{
		Scheme: "https", Host: net.JoinHostPort(address, strconv.Itoa(int(port))),
		Path: path, RawQuery: query.Encode(),
	}, nil
}

// Get requests to; with unchecked, it does not verify the server's certificate.
// The caller closes the body, which lasts as long as a log is followed and ends
// with ctx.
func (c *Client) Get(ctx context.Context, to *url.URL, unchecked bool) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking the kubelet: %w", err)
	}
	by := c.verifying
	if unchecked {
		by = c.nonVerifying
	}
	answer, err := by.RoundTrip(r)
	if err != nil {
		return nil, dialError(err)
	}
	return answer, nil
}

// forward forwards an upgrade request to the kubelet and returns when the
// streams have ended. The kubelet's refusal is passed to the client; an error
// means that nothing has been written.
func (c *Client) forward(w http.ResponseWriter, r *http.Request, to *url.URL) error {
	if err := RequireUpgrade(r); err != nil {
		return err
	}
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport:     c.verifying,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = to, to.Host
			// The kubelet authenticates the server by its certificate; the user's
			// credentials are not forwarded.
			p.Out.Header.Del("Authorization")
			p.Out.Header.Del("Cookie")
			tracing.Inject(r.Context(), p.Out.Header)
		},
		ModifyResponse: func(answer *http.Response) error { return CheckUpgraded(r, answer) },
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	upgrade.Serve(proxy, w, r)
	if failed != nil && !errors.Is(failed, context.Canceled) {
		return unreachable(failed)
	}
	return nil
}

func dialError(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("error dialing backend: %w", err))
}
