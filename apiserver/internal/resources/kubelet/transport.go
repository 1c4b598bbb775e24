package kubelet

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// transport connects to kubelets with the client certificate on disk. Connections
// made with an earlier one are not reused, since kubelets would judge requests by
// that.
type transport struct {
	pair *pki.Reloader // nil for none

	mu          sync.Mutex
	certificate *tls.Certificate // the certificate of present connections
	inUse       *http.Transport
}

// newTransport returns a transport that verifies kubelets' certificates as
// config says, and presents the certificate in pair.
func newTransport(config *tls.Config, pair *pki.Reloader, timeout time.Duration) *transport {
	timeout = cmp.Or(timeout, defaultTimeout)
	if pair != nil {
		config.GetClientCertificate = pair.GetClientCertificate
	}
	return &transport{pair: pair, inUse: &http.Transport{
		TLSClientConfig:     config,
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout: timeout,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     time.Minute,

		MaxResponseHeaderBytes: rest.MaxAnswerHeaders,
		// Upgrades to SPDY and WebSocket exist in HTTP/1.1 only, which is all that
		// a transport with its own TLS configuration speaks unless asked.
		ForceAttemptHTTP2: false,
	}}
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current().RoundTrip(r)
}

func (t *transport) current() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pair == nil {
		return t.inUse
	}
	with, err := t.pair.GetClientCertificate(nil)
	if err == nil && with != t.certificate {
		if t.certificate != nil {
			t.inUse.CloseIdleConnections()
			t.inUse = t.inUse.Clone()
		}
		t.certificate = with
	}
	return t.inUse
}

// withDialControl is a transport like t that only connects to what allowed permits.
func (t *transport) withDialControl(allowed func(net.IP) error) *transport {
	now := t.current().Clone()
	dialer := net.Dialer{Timeout: now.TLSHandshakeTimeout, Control: DialControl(allowed)}
	now.DialContext = dialer.DialContext
	return &transport{pair: t.pair, inUse: now}
}

// DialControl is a net.Dialer's Control that checks the address being connected to
// with allowed.
func DialControl(allowed func(net.IP) error) func(network, address string, connection syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		return allowed(net.ParseIP(host))
	}
}

func (t *transport) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse.CloseIdleConnections()
}

// pairOf is the client certificate for kubelets; nil for none.
func pairOf(o *Options) (*pki.Reloader, error) {
	if o.CertFile == "" && o.KeyFile == "" {
		return nil, nil
	}
	return daemon.Certificate(o.CertFile, o.KeyFile, clock.RealClock{}, o.Logger)
}
