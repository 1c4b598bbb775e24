package rest

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"

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
	clock  clock.PassiveClock
	// authorities reads those to trust now; nil if they can't change.
	authorities func() []byte

	mu             sync.Mutex
	read           time.Time   // when the authorities were read last
	trusted        []byte      // what the pools trust, or what was no authority
	tls            *tls.Config // of the pools
	lasting, short *http.Transport
	complaints     pki.Complaints
}

// authoritiesEvery is how often a file is looked at: requests are more frequent.
const authoritiesEvery = time.Second

func newPools(cfg *Config, dial dialer, clock clock.PassiveClock) (*pools, error) {
	p := &pools{config: *cfg, dial: dial, clock: clock, complaints: pki.Complaints{To: cfg.OnFileProblem}}
	file := newKubeconfigFile(cfg)
	switch {
	case cfg.Insecure:
	case len(cfg.CAData) > 0 && cfg.kubeconfig.path != "":
		p.authorities = func() []byte { return file.current().CAData }
	case len(cfg.CAData) == 0 && cfg.CAFile != "":
		authorities, err := pki.NewAuthorities("certificate authority", cfg.CAFile, clock)
		if err != nil {
			return nil, err
		}
		authorities.Tell(cfg.OnFileProblem)
		p.authorities = authorities.PEM
		p.config.CAData = authorities.PEM()
	}
	p.trusted = p.config.CAData // which may not be what the file says by now
	var err error
	if p.tls, err = p.config.tls(file, clock); err != nil {
		return nil, err
	}
	p.lasting, p.short = cfg.transports(p.tls, dial)
	return p, nil
}

// current returns the pools to use for the next request.
func (p *pools) current() (lasting, short *http.Transport) {
	if p.authorities == nil {
		return p.lasting, p.short
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.clock.Now(); now.Sub(p.read) >= authoritiesEvery {
		p.read = now
		p.follow(p.authorities())
	}
	return p.lasting, p.short
}

// follow trusts what is to be trusted now. What worked so far is better than nothing. The
// client's certificate is left alone: new connections read it themselves, and it may be in
// the middle of being replaced, too.
func (p *pools) follow(authorities []byte) {
	if bytes.Equal(authorities, p.trusted) {
		return
	}
	p.trusted = authorities
	changed := p.tls.Clone()
	err := trust(changed, authorities)
	if err != nil {
		err = fmt.Errorf("kubeconfig %s: %w", p.config.kubeconfig.path, err)
	}
	if p.complaints.AboutReload(err); err != nil {
		return
	}
	p.tls = changed
	p.lasting.CloseIdleConnections()
	p.short.CloseIdleConnections()
	p.lasting, p.short = p.config.transports(p.tls, p.dial)
}

// forLasting returns the pool for watches and streams.
func (p *pools) forLasting() *http.Transport {
	lasting, _ := p.current()
	return lasting
}

// forShort returns the pool for all other requests.
func (p *pools) forShort() *http.Transport {
	_, short := p.current()
	return short
}

// currentPool carries each request by the pool that it returns then.
type currentPool func() *http.Transport

func (current currentPool) RoundTrip(r *http.Request) (*http.Response, error) {
	return current().RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of the pool.
func (current currentPool) CloseIdleConnections() { current().CloseIdleConnections() }
