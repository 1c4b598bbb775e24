package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/kubeletclient"
	"kctl/apiserver/internal/registry"
	"kctl/proto/clientauth"
	"kctl/proto/rest"
	"kctl/proto/tracing"
	"kctl/proto/upgrade"
)

const dialTimeout = 10 * time.Second

// Sources are where the proxies look up targets.
type Sources struct {
	Pods, Services, EndpointSlices, Nodes registry.Resource
	Kubelets                              *kubeletclient.Client
}

// Proxies serve the three subresources.
type Proxies struct {
	Sources
	transport *http.Transport
	kubelets  http.RoundTripper
	checkIP   func(net.IP) error
}

// New returns the proxies to what is found in sources.
func New(sources Sources) *Proxies {
	p := &Proxies{Sources: sources, checkIP: checkProxyableIP}
	permission := func(ip net.IP) error { return p.checkIP(ip) }
	dialer := &net.Dialer{Timeout: dialTimeout, Control: kubeletclient.DialControl(permission)} // a name may resolve differently now
	p.kubelets = sources.Kubelets.Transport(permission)
	p.transport = &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: dialTimeout,
		// Pods' certificates are not verified, as in upstream.
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true},
		MaxIdleConnsPerHost: 2,
		MaxIdleConns:        64,
		IdleConnTimeout:     30 * time.Second,

		MaxResponseHeaderBytes: rest.MaxAnswerHeaders,
	}
	return p
}

type connect = func(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error

// Pod is pods/proxy.
func (p *Proxies) Pod() registry.Subresource { return p.subresource("PodProxyOptions", p.pod) }

// Service is services/proxy.
func (p *Proxies) Service() registry.Subresource {
	return p.subresource("ServiceProxyOptions", p.service)
}

// Node is nodes/proxy.
func (p *Proxies) Node() registry.Subresource { return p.subresource("NodeProxyOptions", p.node) }

func (p *Proxies) subresource(kind string, find finder) registry.Subresource {
	serve := p.serve(find)
	methods := map[string]connect{}
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
	} {
		methods[method] = serve
	}
	return registry.Subresource{Name: "proxy", Kind: corev1.SchemeGroupVersion.WithKind(kind), Connect: methods, AnyPath: true}
}

func (p *Proxies) serve(find finder) connect {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error {
		prefix, rest, err := splitPath(r.URL, namespace != "")
		if err != nil {
			return err
		}
		to, err := find(ctx, namespace, name)
		if err != nil {
			return err
		}
		if rest == "" && r.Header.Get("Upgrade") == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			// Relative links on the page have to stay below the proxy's path.
			location := prefix + "/"
			if r.URL.RawQuery != "" {
				location += "?" + r.URL.RawQuery
			}
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusMovedPermanently)
			return nil
		}
		if rest == "" {
			rest = "/"
		}
		return forward(w, r.WithContext(ctx), to, prefix, rest)
	}
}

// splitPath splits a request's path, as it was sent, after ".../proxy". The first
// part has to be the same escaped and unescaped, because authorization was
// decided by the unescaped one.
func splitPath(u *url.URL, namespaced bool) (prefix, rest string, err error) {
	parts := 6 // /api/v1/nodes/NAME/proxy
	if namespaced {
		parts = 8 // /api/v1/namespaces/NAMESPACE/pods/NAME/proxy
	}
	cut := func(path string) (string, string) {
		pieces := strings.SplitN(path, "/", parts+1)
		prefix := strings.Join(pieces[:min(parts, len(pieces))], "/")
		return prefix, strings.TrimPrefix(path, prefix)
	}
	prefix, rest = cut(u.EscapedPath())
	asked, _ := cut(u.Path)
	if unescaped, err := url.PathUnescape(prefix); err != nil || unescaped != asked {
		return "", "", apierrors.NewBadRequest("the path has an escaped slash before the proxy's own part")
	}
	return prefix, rest, nil
}

// forward forwards the request, including upgrades, and the answer back. An error
// means that nothing has been written.
func forward(w http.ResponseWriter, r *http.Request, to *target, prefix, rest string) error {
	path, err := url.PathUnescape(rest)
	if err != nil {
		return apierrors.NewBadRequest("the path can't be unescaped")
	}
	links := rewriter{prefix: prefix, requested: r.Host, target: to.host}
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport:     to.transport,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Scheme: to.scheme, Host: to.host, Path: path, RawPath: rest, RawQuery: p.In.URL.RawQuery}
			p.Out.Host = p.In.Host
			setForwardedHeaders(p, prefix+rest)
			if to.kubelet { // it authenticates the server by its certificate
				p.Out.Host = to.host
				p.Out.Header.Del("Cookie")
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			if err := kubeletclient.CheckUpgraded(r, answer); err != nil {
				return err
			}
			return links.rewriteResponse(answer)
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	upgrade.Serve(proxy, w, r)
	if told := apierrors.APIStatus(nil); errors.As(failed, &told) {
		return failed
	}
	if failed != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("error trying to reach service: %v", failed))
	}
	return nil
}

// setForwardedHeaders tells the target its external address, and nothing about the user.
func setForwardedHeaders(p *httputil.ProxyRequest, seen string) {
	clientauth.RemoveClaims(p.Out.Header)
	p.Out.Header.Set("X-Forwarded-Uri", seen)
	tracing.Inject(p.In.Context(), p.Out.Header)
	from := p.In.Header.Values("X-Forwarded-For")
	if client, _, err := net.SplitHostPort(p.In.RemoteAddr); err == nil {
		from = append(from[:len(from):len(from)], client)
	}
	if len(from) > 0 {
		p.Out.Header.Set("X-Forwarded-For", strings.Join(from, ", "))
	}
}
