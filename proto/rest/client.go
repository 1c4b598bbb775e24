package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
)

// Client sends requests to one API server. It is safe for concurrent use.
type Client struct {
	base       *url.URL
	http       *http.Client // no timeout: streams and watches last
	shortLived *http.Client // for requests that do not
	timeout    time.Duration
	userAgent  string
	who        *authorization
	clock      clock.Clock
	meter      Meter
	propagate  func(context.Context, http.Header) // nil adds nothing

	connections *connections
}

// New returns a client for cfg. It reads the certificates but does not connect.
func New(cfg *Config) (*Client, error) { return newClient(cfg, clock.RealClock{}) }

func newClient(cfg *Config, clock clock.Clock) (*Client, error) {
	base, err := cfg.baseURL()
	if err != nil {
		return nil, err
	}
	open := &connections{}
	lasting, short := cfg.Transport, cfg.Transport
	if cfg.Transport == nil {
		pools, err := newPools(cfg, open.dial, clock)
		if err != nil {
			return nil, fmt.Errorf("client of %s: %w", cfg.Host, err)
		}
		lasting, short = currentPool(pools.forLasting), currentPool(pools.forShort)
		open.renewable = pools.lasting.TLSClientConfig.GetClientCertificate != nil
	}
	meter := cfg.Meter
	if meter == nil {
		meter = noopMeter{}
	}
	c := &Client{
		base: base, timeout: cfg.Timeout, userAgent: cmp.Or(cfg.UserAgent, "kctl"),
		who:   newAuthorization(cfg, clock),
		clock: clock, connections: open, meter: meter, propagate: cfg.Propagate,
	}
	c.http = &http.Client{Transport: credentialsTransport{next: lasting, client: c}, CheckRedirect: c.checkRedirect}
	c.shortLived = &http.Client{Transport: credentialsTransport{next: short, client: c}, CheckRedirect: c.checkRedirect}
	return c, nil
}

// maxRedirects is net/http's.
const maxRedirects = 10

// checkRedirect follows redirects only within the server: credentials go with every request,
// and what is behind a server's proxies (pods, services) may redirect anywhere.
func (c *Client) checkRedirect(request *http.Request, via []*http.Request) error {
	if to := request.URL; to.Scheme != c.base.Scheme || to.Host != c.base.Host {
		return fmt.Errorf("redirect to another server, %s://%s, was not followed, to keep the credentials from it", to.Scheme, to.Host)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

// HTTP is the client's http.Client; it adds the credentials to every request.
func (c *Client) HTTP() *http.Client { return c.http }

// URL is the full address of an API path.
func (c *Client) URL(path string) *url.URL {
	u := *c.base
	u.Path += path
	return &u
}

// credentialsTransport adds the user agent and the client's authorization to each request.
type credentialsTransport struct {
	next   http.RoundTripper
	client *Client
}

func (t credentialsTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	authorization, err := t.client.who.header()
	if err != nil {
		return nil, err
	}
	propagate := t.client.propagate
	if needsIdentity(r.Header, authorization) || propagate != nil {
		r = r.Clone(r.Context())
		t.client.addIdentity(r.Header, authorization)
	}
	if propagate != nil {
		propagate(r.Context(), r.Header)
	}
	resp, err := t.next.RoundTrip(r)
	code := 0
	if err == nil {
		code = resp.StatusCode
	}
	t.client.meter.Answered(r.Method, r.URL.Host, code)
	return resp, err
}

// needsIdentity reports whether addIdentity would add any header.
func needsIdentity(h http.Header, authorization string) bool {
	return h.Get("User-Agent") == "" || authorization != "" && h.Get("Authorization") == ""
}

// addIdentity adds who we are to a request's header, unless it is there.
func (c *Client) addIdentity(h http.Header, authorization string) {
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", c.userAgent)
	}
	if authorization != "" && h.Get("Authorization") == "" {
		h.Set("Authorization", authorization)
	}
}

// CloseIdleConnections closes the idle connections of the pool.
func (t credentialsTransport) CloseIdleConnections() { closeIdleConnections(t.next) }

// Do sends body as JSON to path and decodes the answer into into; either may be nil. A
// []byte body is sent as it is; an io.Writer gets the answer as it arrives, whatever its
// form and length. After an answer that says "try again" (429 and 503 with Retry-After)
// the request is sent again while ctx lasts, at most maxRetries times, each after
// maxRetryAfter at most.
func (c *Client) Do(ctx context.Context, method, path string, body, into any, opts ...Option) error {
	call := newCall(method, body, opts)
	call.path = path
	return c.do(ctx, call, into)
}

func (c *Client) do(ctx context.Context, call *call, into any) error {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	resp, err := c.send(ctx, c.shortLived, call)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into, ok := into.(io.Writer); ok {
		n, err := io.Copy(into, resp.Body)
		c.meter.Received(call.method, c.base.Host, int(n))
		if err != nil {
			return fmt.Errorf("%s: pass the answer on: %w", call, err)
		}
		return nil
	}
	data, err := readBody(resp)
	c.meter.Received(call.method, c.base.Host, len(data))
	if err != nil {
		return fmt.Errorf("%s: read answer: %w", call, err)
	}
	switch into := into.(type) {
	case nil:
		return nil
	case *[]byte:
		*into = data
		return nil
	}
	decode := json.Unmarshal
	if _, object := into.(core.Object); object {
		decode = core.Decode
	}
	if err := decode(data, into); err != nil {
		return fmt.Errorf("%s: decode answer: %w", call, err)
	}
	return nil
}

// maxTrustedLength is the largest stated length of an answer for which memory is allocated in
// advance.
const maxTrustedLength = 64 << 20

func readBody(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > 0 && resp.ContentLength <= maxTrustedLength {
		data := make([]byte, resp.ContentLength)
		_, err := io.ReadFull(resp.Body, data)
		return data, err
	}
	return io.ReadAll(resp.Body)
}

const maxRetries = 10

// send returns a 2xx answer; the caller closes its body.
func (c *Client) send(ctx context.Context, by *http.Client, call *call) (*http.Response, error) {
	// Names may be somebody else's, such as those in a pod, and would be a path to another object with our credentials.
	if problems := path.IsValidPathSegmentName(call.name); len(problems) > 0 {
		return nil, fmt.Errorf("%s: invalid resource name %q: %s", call.resource.Resource, call.name, strings.Join(problems, ", "))
	}
	payload, err := encode(call.body)
	if err != nil {
		return nil, fmt.Errorf("%s: encode: %w", call, err)
	}
	began := c.clock.Now()
	defer func() { c.meter.Called(call.method, c.base.Host, c.clock.Since(began), len(payload)) }()
	for attempt := 0; ; attempt++ {
		req, err := c.request(ctx, call, payload)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", call, err)
		}
		resp, err := by.Do(req)
		if err != nil {
			return nil, err // already says method and URL
		}
		if resp.StatusCode < 300 || resp.StatusCode == http.StatusSwitchingProtocols {
			call.warn(resp)
			return resp, nil
		}
		wait, again := retryAfter(resp)
		failure := statusError(resp, call)
		if resp.StatusCode == http.StatusUnauthorized {
			c.connections.reconnectOnRefusal(c.clock.Now())
		}
		if !again || attempt >= maxRetries {
			return nil, failure
		}
		if err := backoff.Sleep(ctx, c.clock, wait); err != nil {
			return nil, errors.Join(failure, err)
		}
		c.meter.Retried(call.method, c.base.Host, resp.StatusCode)
	}
}

// request makes a complete request, so that no transport has to copy it to add
// something.
func (c *Client) request(ctx context.Context, call *call, payload []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, call.method, "", bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = c.URL(call.path), c.base.Host
	req.URL.RawQuery = call.query.Encode()
	maps.Copy(req.Header, call.header)
	if len(payload) > 0 {
		req.Header.Set("Content-Type", cmp.Or(call.contentType, "application/json"))
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	authorization, err := c.who.header()
	if err != nil {
		return nil, err
	}
	c.addIdentity(req.Header, authorization)
	return req, nil
}

// retryPolicy spreads retries, so that clients that were turned away together
// do not come back together.
var retryPolicy = backoff.Policy{Initial: time.Second, Max: 30 * time.Second, Factor: 1, Jitter: 0.5}

// maxRetryAfter bounds how long an answer may delay a request: proxies say an hour, or a
// year, for servers that are back in a minute.
const maxRetryAfter = time.Minute

func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0, false
	}
	wait := maxRetryAfter
	if seconds < int(maxRetryAfter/time.Second) {
		wait = time.Duration(seconds) * time.Second
	}
	return wait + retryPolicy.Delay(1)/4, true
}

func encode(body any) ([]byte, error) {
	switch body := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return body, nil
	case *metav1.DeleteOptions:
		if body == nil {
			return nil, nil
		}
	}
	return json.Marshal(body)
}
