package rotation

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"

	"kctl/proto/pki"
)

// Transport is an http.RoundTripper. It is safe for concurrent use.
type Transport struct {
	shown       func(*tls.CertificateRequestInfo) (*tls.Certificate, error) // nil for nothing that could change
	authorities *pki.Authorities                                            // nil for those of the configuration

	mu      sync.Mutex
	inUse   *http.Transport
	showing *tls.Certificate // by the connections of inUse; nil for those of the first request
	trusted *x509.CertPool   // by inUse, if authorities are given
}

// New returns a Transport that makes connections as first does, which it owns from now on. They
// trust the authorities, unless these are nil.
func New(first *http.Transport, authorities *pki.Authorities) *Transport {
	t := &Transport{authorities: authorities, inUse: first}
	if first.TLSClientConfig != nil {
		t.shown = first.TLSClientConfig.GetClientCertificate
	}
	if authorities != nil {
		t.trusted = authorities.Pool()
		first.TLSClientConfig.RootCAs = t.trusted
	}
	return t
}

// Clone returns a Transport with connections of its own, which it makes as t does but for what
// change does to it.
func (t *Transport) Clone(change func(*http.Transport)) *Transport {
	first := t.current().Clone()
	change(first)
	return New(first, t.authorities)
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current().RoundTrip(r)
}

// CloseIdleConnections closes the connections that carry no request.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inUse.CloseIdleConnections()
}

func (t *Transport) current() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	showing, trusted := t.showing, t.trusted
	if t.shown != nil {
		if now, err := t.shown(nil); err == nil { // on an error the connection fails, and says why
			showing = now
		}
	}
	if t.authorities != nil {
		trusted = t.authorities.Pool()
	}
	if (t.showing != nil && showing != t.showing) || trusted != t.trusted {
		t.inUse.CloseIdleConnections()
		t.inUse = t.inUse.Clone()
		if t.authorities != nil {
			t.inUse.TLSClientConfig.RootCAs = trusted
		}
	}
	t.showing, t.trusted = showing, trusted
	return t.inUse
}
