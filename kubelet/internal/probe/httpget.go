package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/daemon"
)

// lingerSeconds keeps the closed connections of many probes from using up the
// node's ports: they wait for one second only.
const lingerSeconds = 1

func newDialer() *net.Dialer {
	return &net.Dialer{Control: func(_, _ string, connection syscall.RawConn) error {
		var err error
		controlErr := connection.Control(func(fd uintptr) {
			err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: lingerSeconds})
		})
		return errors.Join(controlErr, err)
	}}
}

// httpGetter probes over HTTP. Each request has a connection of its own: that
// one can be made is part of the probe.
type httpGetter struct {
	transport *http.Transport
	userAgent string
}

func newHTTPGetter(dialer *net.Dialer) *httpGetter {
	version := daemon.Version()
	return &httpGetter{
		userAgent: "kube-probe/" + version.Major + "." + version.Minor,
		transport: &http.Transport{
			DialContext:        dialer.DialContext,
			DisableKeepAlives:  true,
			DisableCompression: true,
			// Many containers may answer at once, each with headers of net/http's default of 10
			// MiB.
			MaxResponseHeaderBytes: maxHeaders,
			// A container's certificate is for its clients, not for the node.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		},
	}
}

func (g *httpGetter) get(ctx context.Context, action *corev1.HTTPGetAction, address string, timeout time.Duration) (Answer, error) {
	request, err := g.request(ctx, action, address)
	if err != nil {
		return Answer{}, err
	}
	client := &http.Client{Transport: g.transport, Timeout: timeout, CheckRedirect: stayOnHost}
	resp, err := client.Do(request)
	if err != nil {
		return failed("%v", err), nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput))
	if err != nil {
		return failed("reading the answer: %v", err), nil
	}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return Answer{Warned, "Probe terminated redirects, Response body: " + string(body)}, nil
	case resp.StatusCode >= 200 && resp.StatusCode < 400:
		return Answer{Output: string(body)}, nil
	}
	return failed("HTTP probe failed with statuscode: %d", resp.StatusCode), nil
}

func (g *httpGetter) request(ctx context.Context, action *corev1.HTTPGetAction, address string) (*http.Request, error) {
	target, err := url.Parse(action.Path)
	if err != nil {
		// What can't be read as a URL may still be a path.
		target = &url.URL{Path: action.Path}
	}
	target.Scheme = strings.ToLower(string(action.Scheme))
	if target.Scheme == "" {
		target.Scheme = "http"
	}
	target.Host = address
	if !strings.HasPrefix(target.Path, "/") {
		target.Path = "/" + target.Path
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("httpGet: %w", err)
	}
	for _, header := range action.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
		}
	}
	for name, value := range map[string]string{"User-Agent": g.userAgent, "Accept": "*/*"} {
		if values, given := request.Header[name]; !given {
			request.Header.Set(name, value)
		} else if len(values) == 1 && values[0] == "" && name == "Accept" {
			request.Header.Del(name) // the user wants none
		}
	}
	return request, nil
}

// stayOnHost follows redirects only to the same host: the health of another is
// not the container's.
func stayOnHost(request *http.Request, via []*http.Request) error {
	if request.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
