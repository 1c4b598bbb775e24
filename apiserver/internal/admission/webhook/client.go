package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxAnswer has room for a patch that replaces the largest object there can
	// be, in base64.
	maxAnswer = 8 << 20
	// dialTimeout bounds how long one of a service's addresses is tried.
	dialTimeout = 5 * time.Second
	userAgent   = "kube-apiserver-admission"
)

// client speaks to one webhook. Its connections are kept and used again.
type client struct {
	config *admissionregistrationv1.WebhookClientConfig
	url    *url.URL
	broken error

	mu   sync.Mutex
	http *http.Client
}

func newClient(config *admissionregistrationv1.WebhookClientConfig, timeout time.Duration) *client {
	c := &client{config: config}
	switch service := config.Service; {
	case service != nil:
		c.url = &url.URL{Scheme: "https", Host: net.JoinHostPort(serverName(service), strconv.Itoa(int(port(service)))), Path: "/"}
		if service.Path != nil {
			c.url.Path = *service.Path
		}
	case config.URL != nil:
		c.url, c.broken = url.Parse(*config.URL)
	default:
		c.broken = errors.New("webhook configuration must have either service or URL")
	}
	if c.broken == nil {
		c.url.RawQuery = url.Values{"timeout": {timeout.String()}}.Encode()
	}
	return c
}

// serverName is the name that a service's certificate must have.
func serverName(s *admissionregistrationv1.ServiceReference) string {
	return s.Name + "." + s.Namespace + ".svc"
}

func port(s *admissionregistrationv1.ServiceReference) int32 {
	if s.Port == nil {
		return 443
	}
	return *s.Port
}

// connected is the HTTP client, made at the first call.
func (c *client) connected(services Services) (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		return c.http, nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.config.CABundle) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(c.config.CABundle) {
			return nil, errors.New("unable to load root certificates: no valid certificate in caBundle")
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	// HTTP/1.1, as upstream: calls side by side spread over a service's pods.
	transport := &http.Transport{
		TLSClientConfig: trust, DialContext: dialer.DialContext, Proxy: http.ProxyFromEnvironment,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if service := c.config.Service; service != nil {
		trust.ServerName = serverName(service)
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialService(ctx, services, service, dialer, network)
		}
	}
	c.http = &http.Client{
		Transport: transport,
		// Where a request goes is what the configuration says, and not the answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c.http, nil
}

// close ends what connections are not in use.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// post sends a review and returns the answer's body.
func (c *client) post(ctx context.Context, services Services, review []byte) ([]byte, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	connected, err := c.connected(services)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	r.Header.Set("User-Agent", userAgent)
	response, err := connected.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices:
		return nil, apierrors.NewGenericServerResponse(response.StatusCode, http.MethodPost, schema.GroupResource{}, "", "unknown", 0, true)
	case err != nil:
		return nil, fmt.Errorf("read the response: %w", err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the response is longer than %d bytes", maxAnswer)
	case len(body) == 0:
		return nil, fmt.Errorf("0-length response with status code: %d and content type: %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
	return body, nil
}
