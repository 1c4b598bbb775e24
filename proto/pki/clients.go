package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
)

// TakeClients makes a server ask its clients for certificates of these authorities, each
// given in PEM (Authorities.PEM) as they are when a connection begins; "" for none. Clients are
// told which authorities are accepted: browsers, and tools with several certificates, choose by
// that. Set everything else in the configuration before.
func TakeClients(c *tls.Config, how tls.ClientAuthType, of ...func() []byte) {
	c.ClientAuth = how
	n := &clientAuthorities{authorities: of, current: c, base: c.Clone()}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return n.config(), nil }
}

// clientAuthorities is a configuration together with authorities that may change.
type clientAuthorities struct {
	authorities   []func() []byte
	base, current *tls.Config

	mu  sync.Mutex
	pem [][]byte
}

// config returns a new configuration only if the authorities have changed, since sessions
// can be resumed only with the keys of the same configuration.
func (n *clientAuthorities) config() *tls.Config {
	n.mu.Lock()
	defer n.mu.Unlock()
	var now [][]byte
	for _, authorities := range n.authorities {
		now = append(now, authorities())
	}
	if slices.EqualFunc(now, n.pem, bytes.Equal) {
		return n.current
	}
	pool := x509.NewCertPool()
	for _, data := range now {
		pool.AppendCertsFromPEM(data)
	}
	n.pem, n.current = now, n.base.Clone()
	n.current.ClientCAs = pool
	return n.current
}
