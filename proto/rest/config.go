package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"kctl/proto/pki"
)

// Config says where an API server is and how to prove to it who we are.
type Config struct {
	Host string // https://host:port, with or without a path prefix

	CAFile     string // read again as it changes, by the Client
	CAData     []byte
	ServerName string // expected in the server's certificate, if not Host's
	Insecure   bool   // accept any server certificate

	CertFile, KeyFile string // read again as they change
	CertData, KeyData []byte
	// kubeconfig, if set, is what CAData, CertData and KeyData are from. The file is
	// read again as it changes.
	kubeconfig      origin
	BearerToken     string
	BearerTokenFile string // read again as it changes
	// Username and Password are for servers that want basic authentication; never beside a
	// token. No API server does (any longer), but webhooks may.
	Username, Password string

	// Transport, if set, carries the requests instead of one built from the
	// fields above, whose credentials it must add itself: for proxies and
	// credential plugins, which this package does not know.
	Transport http.RoundTripper

	// ConnectionPerRequest sends requests over HTTP/1.1, each on a connection of
	// its own; watches and streams still share one over HTTP/2. It is for programs
	// with many short requests in flight: sharing one connection costs both ends
	// more than a connection each.
	ConnectionPerRequest bool

	Namespace string // the context's; "" if it names none
	UserAgent string
	// Timeout bounds a whole request; zero for none. Watches and streams are
	// never bounded by it.
	Timeout time.Duration
	// Propagate, if set, adds to a request's header what the receiver should know
	// about the work that the request belongs to (a trace, say).
	Propagate func(context.Context, http.Header)
	// Meter, if set, is called for every request.
	Meter Meter
	// OnFileProblem, if set, hears of what is wrong with the files above in use (see
	// pki.Complaints). It must not use the Client.
	OnFileProblem func(error)
}

const (
	dialTimeout = 10 * time.Second
	// idleConnections is how many are kept for the next requests, where these do not share
	// one.
	idleConnections = 64
	// answerTimeout is more than the minute that API servers give themselves.
	answerTimeout = 75 * time.Second
)

// transports builds the pools of connections: one for watches and streams,
// which speaks HTTP/2 if the server does, and one for short requests, which is
// the same one unless each request has a connection of its own.
func (cfg *Config) transports(tlsConfig *tls.Config, dial dialer) (lasting, short *http.Transport) {
	lasting = pool(tlsConfig.Clone(), dial)
	lasting.ForceAttemptHTTP2 = true
	if !cfg.ConnectionPerRequest {
		return lasting, lasting
	}
	short = pool(tlsConfig.Clone(), dial)
	short.Protocols = new(http.Protocols)
	short.Protocols.SetHTTP1(true)
	// HTTP/1.1 has no pings that would reveal a dead connection.
	short.ResponseHeaderTimeout = answerTimeout
	return lasting, short
}

func pool(tlsConfig *tls.Config, dial dialer) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   dialTimeout,
		MaxIdleConnsPerHost:   idleConnections,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		HTTP2: &http.HTTP2Config{
			// A watch on a dead connection must be noticed, even if no event is due.
			SendPingTimeout: 30 * time.Second,
			PingTimeout:     15 * time.Second,
		},
		// Answers are gzipped only where it was asked for: on loopback and in a
		// data centre, compressing costs more than sending.
		DisableCompression: true,
	}
}

// TLS is the client's TLS configuration, for connections made without the
// Client (upgrades).
func (cfg *Config) TLS() (*tls.Config, error) {
	return cfg.tls(newKubeconfigFile(cfg), clock.RealClock{})
}

func (cfg *Config) tls(file *kubeconfigFile, clock clock.PassiveClock) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         cfg.ServerName,
		InsecureSkipVerify: cfg.Insecure,
	}
	ca, err := dataOrFile(cfg.CAData, cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	if len(ca) > 0 {
		if err := trust(c, ca); err != nil {
			return nil, err
		}
	}
	return c, cfg.presentCertificate(c, file, clock)
}

// trust has c accept servers of the authorities only.
func trust(c *tls.Config, authorities []byte) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return errors.New("certificate authority: no PEM certificate in it")
	}
	c.RootCAs = pool
	return nil
}

// presentCertificate makes connections present the client's certificate, if it has
// one, as it is in the files when a connection is made.
func (cfg *Config) presentCertificate(c *tls.Config, file *kubeconfigFile, clock clock.PassiveClock) error {
	if len(cfg.CertData) == 0 && len(cfg.KeyData) == 0 && cfg.CertFile != "" && cfg.KeyFile != "" {
		reloader, err := pki.NewReloader(cfg.CertFile, cfg.KeyFile, clock)
		if err != nil {
			return fmt.Errorf("client %w", err)
		}
		reloader.Tell(cfg.OnFileProblem)
		c.GetClientCertificate = reloader.GetClientCertificate
		return nil
	}
	cert, err := cfg.pair()
	if cert != nil {
		if cfg.kubeconfig.path != "" {
			inside := &kubeconfigCertificate{file: file, clock: clock, read: cfg, cert: cert, complaints: pki.Complaints{To: cfg.OnFileProblem}}
			c.GetClientCertificate = inside.get
		}
		c.Certificates = []tls.Certificate{*cert}
	}
	return err
}

// pair is the client's certificate as it is now; nil if it has none.
func (cfg *Config) pair() (*tls.Certificate, error) {
	certPEM, err := dataOrFile(cfg.CertData, cfg.CertFile)
	if err != nil {
		return nil, fmt.Errorf("read client certificate: %w", err)
	}
	keyPEM, err := dataOrFile(cfg.KeyData, cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read client key: %w", err)
	}
	if len(certPEM) == 0 {
		return nil, nil
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	return &cert, nil
}

func dataOrFile(data []byte, file string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	return os.ReadFile(file)
}

// baseURL checks Host and returns it parsed. Plain HTTP is refused: the API
// has no such mode, and credentials must not leave in the clear.
func (cfg *Config) baseURL() (*url.URL, error) {
	host := cfg.Host
	if host == "" {
		return nil, errors.New("no API server specified")
	}
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("API server address %q: %w", cfg.Host, err)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("API server address %q has no host", cfg.Host)
	}
	if u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("API server address %q: only https is supported", cfg.Host)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// isLoopback lets `kubectl proxy`-like servers on this machine be reached.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
