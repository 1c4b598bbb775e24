package kubeletclient

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/rotation"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// newTransport returns a transport that verifies kubelets' certificates by the authorities, or
// not at all without any, and presents the certificate in pair. Connections made with an earlier
// one are not reused, since kubelets would judge requests by that.
func newTransport(authorities *pki.Authorities, pair *pki.Reloader, timeout time.Duration) *rotation.Transport {
	timeout = cmp.Or(timeout, defaultTimeout)
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: authorities == nil}
	if pair != nil {
		config.GetClientCertificate = pair.GetClientCertificate
	}
	return rotation.New(&http.Transport{
		TLSClientConfig:     config,
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout: timeout,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     time.Minute,

		MaxResponseHeaderBytes: rest.MaxAnswerHeaders,
		// Upgrades to SPDY and WebSocket exist in HTTP/1.1 only, which is all that
		// a transport with its own TLS configuration speaks unless asked.
		ForceAttemptHTTP2: false,
	}, authorities)
}

// withDialControl is a transport like t that only connects to what allowed permits.
func withDialControl(t *rotation.Transport, allowed func(net.IP) error) *rotation.Transport {
	return t.Clone(func(transport *http.Transport) {
		dialer := net.Dialer{Timeout: transport.TLSHandshakeTimeout, Control: DialControl(allowed)}
		transport.DialContext = dialer.DialContext
	})
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

// pairOf is the client certificate for kubelets; nil for none.
func pairOf(o *Options, clock clock.PassiveClock) (*pki.Reloader, error) {
	if o.CertFile == "" && o.KeyFile == "" {
		return nil, nil
	}
	return daemon.Certificate(o.CertFile, o.KeyFile, clock, o.Logger)
}
