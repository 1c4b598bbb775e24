package oidc

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"kctl/proto/rest"
)

// maxResponse bounds what is read of an issuer's documents.
const maxResponse = 1 << 20

// The issuer's keys are fetched whenever a token names an unknown one, and anyone can
// make such tokens. These bound the requests per second, and how many may come at
// once. A new key is known a second later at most, whatever else is sent.
const (
	maxRequestRate  = rate.Limit(1)
	maxRequestBurst = 10
)

var errRateLimited = errors.New("too many requests to the issuer")

// newClient returns the HTTP client for requests to the issuer.
func newClient(o *Options) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.Authorities) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.Authorities) {
			return nil, fmt.Errorf("oidc: authority of issuer %s: no PEM certificate in it", o.IssuerURL)
		}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: requestTimeout,
		MaxResponseHeaderBytes: rest.MaxAnswerHeaders,
	}
	discovery := strings.TrimSuffix(o.IssuerURL, "/") + discoveryPath
	elsewhere := map[string]*url.URL{}
	if o.DiscoveryURL != "" {
		place, err := url.Parse(o.DiscoveryURL)
		if err != nil {
			return nil, fmt.Errorf("oidc: discovery of issuer %s: %w", o.IssuerURL, err)
		}
		elsewhere[discovery] = place
	}
	restricted := restrictedTransport{transport, elsewhere, rate.NewLimiter(maxRequestRate, maxRequestBurst), o.Clock}
	return &http.Client{Transport: observedTransport{restricted, o.IssuerURL, discovery, o.Metrics}, Timeout: requestTimeout}, nil
}

// discoveryPath is where below its address an issuer says where its keys are.
const discoveryPath = "/.well-known/openid-configuration"

// observedTransport counts the requests for the issuer's keys: all but those for its
// discovery document.
type observedTransport struct {
	restrictedTransport
	issuer, discovery string
	metrics           *Metrics
}

func (t observedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.restrictedTransport.RoundTrip(r)
	if original(r).URL.String() == t.discovery || err == nil && isRedirected(answer) {
		return answer, err
	}
	if err != nil {
		t.metrics.observeKeys(t.issuer, nil, err)
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		t.metrics.observeKeys(t.issuer, nil, err)
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	t.metrics.observeKeys(t.issuer, body, err)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// restrictedTransport is a transport that uses TLS only, wherever documents and redirects
// lead, limits the rate of requests, and bounds answers.
type restrictedTransport struct {
	next      *http.Transport
	overrides map[string]*url.URL
	limit     *rate.Limiter
	clock     clock.PassiveClock
}

func (c restrictedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if place := c.overrides[r.URL.String()]; place != nil {
		r = r.Clone(r.Context())
		r.URL, r.Host = place, place.Host
	}
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s: only https is supported", r.URL.Redacted())
	}
	if !c.limit.AllowN(c.clock.Now(), 1) {
		return nil, errRateLimited
	}
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxResponse), answer.Body}
	return answer, nil
}

// CloseIdleConnections closes the pool's idle connections.
func (c restrictedTransport) CloseIdleConnections() { c.next.CloseIdleConnections() }
