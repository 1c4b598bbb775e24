package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
)

// TakeClients has a server ask its clients for certificates of these authorities, as
// their files have them when a connection begins. Clients are told whose are taken:
// browsers, and tools that have several, choose by that. What else the configuration
// says has to be said before.
func TakeClients(c *tls.Config, how tls.ClientAuthType, of ...*Authorities) {
	c.ClientAuth = how
	n := &named{of: of, with: c, without: c.Clone()}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return n.config(), nil }
}

// named is a configuration with the authorities of files that may change.
type named struct {
	of            []*Authorities
	without, with *tls.Config

	mu  sync.Mutex
	pem [][]byte
}

// config is a new one only where the files have others, since sessions are resumed by
// the keys of one.
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
