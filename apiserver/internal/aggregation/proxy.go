package aggregation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/proxy"
	"kctl/proto/clientauth"
	"kctl/proto/tracing"
	"kctl/proto/upgrade"
)

var errRedirect = errors.New("the backend attempted to redirect this request, which is not permitted")

// groupVersionOf is the group and version of a path.
func groupVersionOf(path string) (schema.GroupVersion, bool) {
	rest, ok := strings.CutPrefix(path, "/apis/")
	if !ok {
		return schema.GroupVersion{}, false
	}
	group, rest, ok := strings.Cut(rest, "/")
	version, _, _ := strings.Cut(rest, "/")
	return schema.GroupVersion{Group: group, Version: version}, ok && group != "" && version != ""
}

// Serve forwards a request to the server of its group and version, and the
// answer back. It reports false, and answers nothing, if there is no such
// server.
func (a *Aggregator) Serve(w http.ResponseWriter, r *http.Request) bool {
	gv, ok := groupVersionOf(r.URL.Path)
	return ok && a.serve(w, r, gv)
}

// documentPrefix is the path of the OpenAPI v3 documents.
const documentPrefix = "/openapi/v3"

// ServeDocument forwards a request for the OpenAPI document of a group and
// version to its server, like Serve.
func (a *Aggregator) ServeDocument(w http.ResponseWriter, r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, documentPrefix)
	if !ok {
		return false
	}
	gv, ok := groupVersionOf(rest)
	return ok && a.serve(w, r, gv)
}

func (a *Aggregator) serve(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion) bool {
	to := (*a.remotes.Load())[gv]
	if to == nil {
		return false
	}
	if !to.available.Load() {
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return true
	}
	a.forward(w, r, to)
	return true
}

// forward forwards a request. Its own refusals are in plain text, as upstream's are.
func (a *Aggregator) forward(w http.ResponseWriter, r *http.Request, to *remote) {
	if to.configError != nil {
		http.Error(w, to.configError.Error(), http.StatusInternalServerError)
		return
	}
	host, err := a.resolve(r.Context(), to.service)
	if err != nil {
		a.logger.Warn("a service of the API can't be found", zap.String("apiservice", to.name), zap.Error(err))
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	through := &httputil.ReverseProxy{
		Transport: to.requestTransport, FlushInterval: -1,
		Rewrite:        func(p *httputil.ProxyRequest) { rewriteRequest(p, host) },
		ModifyResponse: refuseRedirect,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errRedirect) {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			http.Error(w, fmt.Sprintf("error trying to reach service: %v", err), http.StatusServiceUnavailable)
		},
	}
	if upgrade.IsRequested(r.Header) {
		ctx, cancel := a.upgradeContext(r.Context())
		defer cancel()
		r, through.Transport = r.WithContext(ctx), to.upgradeTransport
	}
	if begun := request.Begun(r.Context()); begun != nil {
		begun() // the other server sends the initial objects
	}
	upgrade.Serve(through, w, r)
}

// upgradeContext is the context of an upgraded connection: it is not bounded by the
// request's deadline, and ends with either side or with draining.
func (a *Aggregator) upgradeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(a.options.Draining, cancel)
	return ctx, func() { stop(); cancel() }
}

// refuseRedirect refuses redirects: a client might follow with its credentials.
func refuseRedirect(response *http.Response) error {
	proxy.RemoveCORS(response.Header)
	if response.StatusCode >= 300 && response.StatusCode < 400 && response.Header.Get("Location") != "" {
		return errRedirect
	}
	return nil
}

// rewriteRequest names the user to the other server in a front proxy's headers, and
// removes everything with which that server could act as the user.
func rewriteRequest(p *httputil.ProxyRequest, host string) {
	in, out := p.In, p.Out
	out.URL = &url.URL{Scheme: "https", Host: host, Path: in.URL.Path, RawPath: in.URL.RawPath, RawQuery: in.URL.RawQuery}
	out.Host = host
	clientauth.RemoveClaims(out.Header)
	setUserHeaders(out.Header, request.UserFrom(in.Context()))
	tracing.Inject(in.Context(), out.Header)
	from := in.Header.Values("X-Forwarded-For")
	if client, _, err := net.SplitHostPort(in.RemoteAddr); err == nil {
		from = append(from[:len(from):len(from)], client)
	}
	if len(from) > 0 {
		out.Header.Set("X-Forwarded-For", strings.Join(from, ", "))
	}
	out.Header.Set("X-Forwarded-Host", host)
	out.Header.Set("X-Forwarded-Proto", "https")
	out.Header.Set("X-Forwarded-Uri", in.URL.EscapedPath())
	if id := request.IDFrom(in.Context()); id != "" {
		out.Header.Set("Audit-Id", id)
	}
}

// setUserHeaders names the user in the headers that extension servers read
// (Kubernetes docs, "Configure the Aggregation Layer").
func setUserHeaders(header http.Header, user *request.User) {
	if user == nil {
		return
	}
	header.Set("X-Remote-User", user.Username)
	if user.UID != "" {
		header.Set("X-Remote-Uid", user.UID)
	}
	for _, group := range user.Groups {
		header.Add("X-Remote-Group", group)
	}
	for key, values := range user.Extra {
		for _, value := range values {
			header.Add("X-Remote-Extra-"+escapeKey(key), value)
		}
	}
}

// escapeKey turns any key into a valid header name: other characters, and the
// percent sign itself, are percent-encoded.
func escapeKey(key string) string {
	const free = "!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
	var out strings.Builder
	for i := range len(key) {
		if c := key[i]; strings.IndexByte(free, c) >= 0 || c >= 'A' && c <= 'Z' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}
