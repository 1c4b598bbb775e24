package webhookclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/rotation"
	"kctl/apiserver/internal/status"
	"kctl/proto/rest"
	"kctl/proto/tracing"
)

// dialTimeout bounds the attempt to connect to one of a service's addresses.
const dialTimeout = 5 * time.Second

// ClientOptions are a Client's particulars.
type ClientOptions struct {
	// Timeout is sent to the webhook; callers enforce it by their contexts.
	Timeout time.Duration
	// MaxAnswer bounds the size of its answers.
	MaxAnswer int
	UserAgent string
}

// Client calls one webhook that users have named in an object. It reuses
// connections, and is safe for concurrent use.
type Client struct {
	config      *admissionregistrationv1.WebhookClientConfig
	options     ClientOptions
	access      Access
	url         *url.URL
	configError error

	mu     sync.Mutex
	cached *http.Client
}

// NewClient returns a Client, which connects when it is first used. Calls
// return errors in config.
func NewClient(config *admissionregistrationv1.WebhookClientConfig, access Access, o ClientOptions) *Client {
	c := &Client{config: config, access: access, options: o}
	switch service := config.Service; {
	case service != nil:
		c.url = &url.URL{Scheme: "https", Host: net.JoinHostPort(serverName(service), strconv.Itoa(int(port(service)))), Path: "/"}
		if service.Path != nil {
			c.url.Path = *service.Path
		}
	case config.URL != nil:
		c.url, c.configError = url.Parse(*config.URL)
	default:
		c.configError = errors.New("webhook configuration must have either service or URL")
	}
	if c.configError == nil {
		// Like client-go's paths: some webhooks' addresses have a superfluous slash,
		// and their servers would answer with a redirect.
		c.url.Path, c.url.RawPath = path.Join("/", c.url.Path), ""
	}
	return c
}

// serverName is the name that a service's certificate must have.
func serverName(s *admissionregistrationv1.ServiceReference) string {
	return s.Name + "." + s.Namespace + ".svc"
}

const httpsPort = 443

func port(s *admissionregistrationv1.ServiceReference) int32 {
	if s.Port == nil {
		return httpsPort
	}
	return *s.Port
}

// httpClient is the HTTP client, made at the first call.
func (c *Client) httpClient() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached != nil {
		return c.cached, nil
	}
	who := c.access.Credentials.of(c.url.Hostname(), cmp.Or(c.url.Port(), strconv.Itoa(httpsPort)))
	trust, err := c.access.Credentials.tlsOf(who)
	if err != nil {
		return nil, err
	}
	if len(c.config.CABundle) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(c.config.CABundle) {
			return nil, errors.New("unable to load root certificates: no valid certificate in caBundle")
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	// HTTP/1.1, as in upstream: concurrent calls spread over a service's pods.
	transport := &http.Transport{
		TLSClientConfig: trust, DialContext: dialer.DialContext, Proxy: http.ProxyFromEnvironment,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: rest.MaxAnswerHeaders,
	}
	switch service := c.config.Service; {
	case isItself(service, c.url.Path) && c.access.Itself != nil:
		transport.Proxy = nil
		transport.DialTLSContext = c.access.Itself
		who = &rest.Config{}
	case service != nil:
		trust.ServerName = serverName(service)
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialService(ctx, c.access.Services, service, dialer, network)
		}
	}
	c.cached = &http.Client{
		Transport: who.Authorize(rotation.New(transport, nil)),
		// The configuration decides where requests go, not an answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c.cached, nil
}

// Close closes idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached != nil {
		c.cached.CloseIdleConnections()
	}
}

// Post sends a review and returns the answer's body.
func (c *Client) Post(ctx context.Context, review []byte) ([]byte, error) {
	if c.configError != nil {
		return nil, c.configError
	}
	connected, err := c.httpClient()
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = c.timeoutParameter(ctx)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	r.Header.Set("User-Agent", c.options.UserAgent)
	tracing.Inject(ctx, r.Header)
	response, err := connected.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(c.options.MaxAnswer)+1))
	switch {
	case response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices:
		if answered := failureStatus(body); answered != nil {
			return nil, &apierrors.StatusError{ErrStatus: *answered}
		}
		return nil, apierrors.NewGenericServerResponse(response.StatusCode, http.MethodPost, schema.GroupResource{}, "",
			plainText(response.Header, body), 0, true)
	case err != nil:
		return nil, fmt.Errorf("read the response: %w", err)
	case len(body) > c.options.MaxAnswer:
		return nil, fmt.Errorf("the response is longer than %d bytes", c.options.MaxAnswer)
	case len(body) == 0:
		return nil, fmt.Errorf("0-length response with status code: %d and content type: %s",
			response.StatusCode, response.Header.Get("Content-Type"))
	}
	return body, nil
}

// timeoutParameter tells the webhook for how long its answer is waited for: what is left
// of ctx, in whole seconds, if that is less than the webhook's own timeout.
func (c *Client) timeoutParameter(ctx context.Context) string {
	timeout := c.options.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline) + time.Second - 1
		timeout = max(min(timeout, left.Truncate(time.Second)), 0)
	}
	return url.Values{"timeout": {timeout.String()}}.Encode()
}

// maxPlainText bounds what is passed on of an answer that is not understood; upstream's.
const maxPlainText = 2048

// plainText returns the text of an answer that is no Status, for error
// messages.
func plainText(header http.Header, body []byte) string {
	media, _, err := mime.ParseMediaType(cmp.Or(header.Get("Content-Type"), "text/plain"))
	if err != nil || !strings.HasPrefix(media, "text/") {
		return "unknown"
	}
	return strings.TrimSpace(string(body[:min(len(body), maxPlainText)]))
}

// failureStatus is the failure Status in an answer; nil if it is something else. Nobody reads more of
// it than its message.
func failureStatus(body []byte) *metav1.Status {
	var answered metav1.Status
	if json.Unmarshal(body, &answered) != nil || answered.Kind != "Status" || answered.APIVersion != "v1" ||
		answered.Status != metav1.StatusFailure {
		return nil
	}
	answered.Message = status.Shorten(answered.Message)
	return &answered
}
