// Package httpget makes the requests of httpGet actions, which containers have as
// probes and as lifecycle hooks (Kubernetes API, HTTPGetAction), as upstream makes them.
//
// Packages probe and hook send them, each with limits of its own, and judge the answers.
// All of the kubelet's clients that judge redirects themselves end chains of them here.
package httpget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/proto/core"
	"kctl/proto/release"
	"kctl/proto/rest"
)

// NewTransport returns a transport for such requests. They go to the pod without a
// proxy, each over a connection of its own, and no certificate is verified: a
// container's is for its clients, and the node reaches it by an address.
func NewTransport() *http.Transport {
	return &http.Transport{
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: rest.MaxAnswerHeaders,
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}
}

// NewRequest returns the request of an action of the container. host is the pod's
// address, for actions that name no host; purpose is what follows "kube-" in the user
// agent.
func NewRequest(ctx context.Context, action *corev1.HTTPGetAction, container *core.Container, host, purpose string) (*http.Request, error) {
	port, err := PortNumber(container, action.Port)
	if err != nil {
		return nil, err
	}
	if action.Host != "" {
		host = action.Host
	}
	target, err := url.Parse(action.Path)
	if err != nil {
		// What can't be read as a URL may still be a path.
		target = &url.URL{Path: action.Path}
	}
	target.Scheme, target.Host = strings.ToLower(string(action.Scheme)), net.JoinHostPort(host, strconv.Itoa(port))
	if target.Scheme == "" {
		target.Scheme = "http"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("httpGet: %w", err)
	}
	setHeaders(request, action.HTTPHeaders, UserAgent(purpose))
	return request, nil
}

// UserAgent returns the user agent by which a kubelet asks containers for a purpose.
func UserAgent(purpose string) string { return "kube-" + purpose + "/" + release.Kubernetes }

// setHeaders sets the user's headers, and those that the user did not name.
func setHeaders(request *http.Request, headers []corev1.HTTPHeader, userAgent string) {
	for _, header := range headers {
		request.Header.Add(header.Name, header.Value)
	}
	if _, given := request.Header["User-Agent"]; !given {
		request.Header.Set("User-Agent", userAgent)
	}
	if _, given := request.Header["Accept"]; !given {
		request.Header.Set("Accept", "*/*")
	} else if request.Header.Get("Accept") == "" {
		request.Header.Del("Accept") // the user wants none
	}
	request.Host = request.Header.Get("Host") // of the URL, if empty
}

// PortNumber returns the number of a port, which may be the name of one of the
// container's.
func PortNumber(container *core.Container, port intstr.IntOrString) (int, error) {
	number := port.IntValue()
	if port.Type == intstr.String {
		var err error
		if number, err = portByName(container, port.StrVal); err != nil {
			return 0, err
		}
	}
	if number <= 0 || number > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", number)
	}
	return number, nil
}

func portByName(container *core.Container, name string) (int, error) {
	for i := range container.Ports {
		if container.Ports[i].Name == name {
			return int(container.Ports[i].ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("port %q not found in container %q", name, container.Name)
}

// StayOnHost is a http.Client's CheckRedirect that follows redirects to the same host
// only: what another host answers says nothing about the container.
func StayOnHost(request *http.Request, via []*http.Request) error {
	if request.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	return EnoughRedirects(via)
}

// EnoughRedirects ends a chain of requests where net/http does by itself for clients without
// a CheckRedirect.
func EnoughRedirects(via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
