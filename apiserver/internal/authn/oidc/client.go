package oidc

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

// maxAnswer bounds what is read of an issuer's documents.
const maxAnswer = 1 << 20

// newClient returns the client by which the issuer is asked.
func newClient(caFile string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		data, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("oidc authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("oidc authority %s: no PEM certificate in it", caFile)
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: askTimeout}
	return &http.Client{Transport: careful{transport}, Timeout: askTimeout}, nil
}

// careful asks over TLS only, wherever documents and redirects lead, and reads
// no endless answers.
type careful struct{ next *http.Transport }

func (c careful) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s: only https is supported", r.URL.Redacted())
	}
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	return answer, nil
}

// CloseIdleConnections lets go of the pool.
func (c careful) CloseIdleConnections() { c.next.CloseIdleConnections() }
