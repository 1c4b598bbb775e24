package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
)

// TakeClients makes a server ask its clients for certificates of these authorities,
// as they are in their files when a connection begins. Clients are told which
// authorities are accepted: browsers, and tools with several certificates, choose by
// that. Set everything else in the configuration before.
func TakeClients(c *tls.Config, how tls.ClientAuthType, of ...*Authorities) {
	c.ClientAuth = how
	n := &named{of: of, with: c, without: c.Clone()}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return n.config(), nil }
}

// named is a configuration together with authorities whose files may change.
type named struct {
	of            []*Authorities
	without, with *tls.Config

	mu  sync.Mutex
	pem [][]byte
}

// config returns a new configuration only if the files have changed, since sessions
// can be resumed only with the keys of the same configuration.
func (n *named) config() *tls.Config {
	n.mu.Lock()
	defer n.mu.Unlock()
	var now [][]byte
	for _, authorities := range n.of {
		now = append(now, authorities.PEM())
	}
	if slices.EqualFunc(now, n.pem, bytes.Equal) {
		return n.with
	}
	pool := x509.NewCertPool()
	for _, data := range now {
		pool.AppendCertsFromPEM(data)
	}
	n.pem, n.with = now, n.without.Clone()
	n.with.ClientCAs = pool
	return n.with
}
