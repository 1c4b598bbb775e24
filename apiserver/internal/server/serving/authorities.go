package serving

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/config"
)

// nameAuthorities has clients told whose certificates are taken, from which those with
// several choose: browsers, and tools that ask how a server wants to be spoken to.
func nameAuthorities(c *tls.Config, o *config.Options, clock clock.PassiveClock) error {
	n := &named{with: c}
	for _, file := range []string{o.ClientCAFile, o.RequestHeader.ClientCAFile} {
		if file == "" {
			continue
		}
		authorities, err := authn.NewAuthorities("authorities of clients", file, clock)
		if err != nil {
			return err
		}
		n.of = append(n.of, authorities)
	}
	n.without = c.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return n.config(), nil }
	return nil
}

// named is a configuration with the authorities of files that may change.
type named struct {
	of            []*authn.Authorities
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
