package rest

import (
	"bytes"
	"net/http"
	"sync"

	"k8s.io/utils/clock"

	"kctl/proto/pki"
)

// pools are a client's pools of connections. When the authorities that it trusts
// change in its files, later requests get new pools; requests in flight end on the
// connections that they have. A server's authority can then be replaced without a
// restart of its clients (client-go's ClientsAllowCARotation).
type pools struct {
	config Config
	dial   dialer
	// authorities reads those to trust now; nil if they can't change.
	authorities func() []byte

	mu             sync.Mutex
	trusted        []byte // what the pools trust, or could not be built with
	lasting, short *http.Transport
}

func newPools(cfg *Config, dial dialer, clock clock.PassiveClock) (*pools, error) {
	p := &pools{config: *cfg, dial: dial}
	var err error
	if p.lasting, p.short, err = cfg.transports(dial); err != nil {
		return nil, err
	}
	switch {
	case cfg.Insecure:
	case len(cfg.CAData) > 0 && cfg.kubeconfig != "":
		file := &kubeconfigFile{path: cfg.kubeconfig, newest: cfg}
		p.authorities = func() []byte { return file.current().CAData }
	case len(cfg.CAData) == 0 && cfg.CAFile != "":
		authorities, err := pki.NewAuthorities("certificate authority", cfg.CAFile, clock)
		if err != nil {
			return nil, err
		}
		p.authorities = authorities.PEM
	}
	if p.authorities != nil {
		p.trusted = p.authorities()
	}
	return p, nil
}

// current returns the pools to use for the next request.
func (p *pools) current() (lasting, short *http.Transport) {
	if p.authorities == nil {
		return p.lasting, p.short
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.authorities()
	if len(now) == 0 || bytes.Equal(now, p.trusted) {
		return p.lasting, p.short
	}
	p.trusted = now
	p.config.CAData = now
	lasting, short, err := p.config.transports(p.dial)
	if err != nil { // what worked so far is better than nothing
		return p.lasting, p.short
	}
	p.lasting.CloseIdleConnections()
	p.short.CloseIdleConnections()
	p.lasting, p.short = lasting, short
	return lasting, short
}

// forLasting carries watches and streams.
type forLasting struct{ pools *pools }

func (t forLasting) RoundTrip(r *http.Request) (*http.Response, error) {
	lasting, _ := t.pools.current()
	return lasting.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of the pool.
func (t forLasting) CloseIdleConnections() {
	lasting, _ := t.pools.current()
	lasting.CloseIdleConnections()
}

// forShort carries all other requests.
type forShort struct{ pools *pools }

func (t forShort) RoundTrip(r *http.Request) (*http.Response, error) {
	_, short := t.pools.current()
	return short.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of the pool.
func (t forShort) CloseIdleConnections() {
	_, short := t.pools.current()
	short.CloseIdleConnections()
}
