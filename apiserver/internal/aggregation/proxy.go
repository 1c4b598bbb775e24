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
	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/proxy"
	"kctl/proto/tracing"
	"kctl/proto/upgrade"
)

var errRedirect = errors.New("the backend attempted to redirect this request, which is not permitted")

// GroupVersion is the group and version that a path is in.
func GroupVersion(path string) (schema.GroupVersion, bool) {
	rest, ok := strings.CutPrefix(path, "/apis/")
	if !ok {
		return schema.GroupVersion{}, false
	}
	group, rest, ok := strings.Cut(rest, "/")
	version, _, _ := strings.Cut(rest, "/")
	return schema.GroupVersion{Group: group, Version: version}, ok && group != "" && version != ""
}

// Serve passes a request on to the server that answers for its group and
// version, and the answer back. It reports false, and answers nothing, where
// there is no such server.
func (a *Aggregator) Serve(w http.ResponseWriter, r *http.Request) bool {
	gv, ok := GroupVersion(r.URL.Path)
	return ok && a.serve(w, r, gv)
}

// documents is where the documents of OpenAPI v3 are.
const documents = "/openapi/v3"

// ServeDocument passes a request for the OpenAPI document of a group and version
// on to the server that answers for these, as Serve does.
func (a *Aggregator) ServeDocument(w http.ResponseWriter, r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, documents)
	if !ok {
		return false
	}
	gv, ok := GroupVersion(rest)
	return ok && a.serve(w, r, gv)
}

func (a *Aggregator) serve(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion) bool {
	to := (*a.remotes.Load())[gv]
	if to == nil {
		return false
	}
	if !to.available.Load() {
		refuse(w, "service unavailable", http.StatusServiceUnavailable)
		return true
	}
	a.pass(w, r, to)
	return true
}

// refuse speaks as upstream does here: in plain text.
func refuse(w http.ResponseWriter, text string, code int) {
	http.Error(w, text, code)
}

func (a *Aggregator) pass(w http.ResponseWriter, r *http.Request, to *remote) {
	if to.broken != nil {
		refuse(w, to.broken.Error(), http.StatusInternalServerError)
		return
	}
	host, err := a.resolve(r.Context(), to.service)
	if err != nil {
		a.logger.Warn("a service of the API can't be found", zap.String("apiservice", to.name), zap.Error(err))
		refuse(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	through := &httputil.ReverseProxy{
		Transport: to.calls, FlushInterval: -1,
		Rewrite:        func(p *httputil.ProxyRequest) { rewrite(p, host) },
		ModifyResponse: judge,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errRedirect) {
				refuse(w, err.Error(), http.StatusBadGateway)
				return
			}
			refuse(w, fmt.Sprintf("error trying to reach service: %v", err), http.StatusServiceUnavailable)
		},
	}
	if upgrades(r) {
		ctx, cancel := a.stream(r.Context())
		defer cancel()
		r, through.Transport = r.WithContext(ctx), to.upgrades
	}
	if begun := request.Begun(r.Context()); begun != nil {
		begun() // what was there at first, the other server sends
	}
	upgrade.Serve(through, w, r)
}

func upgrades(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" && httpguts.HeaderValuesContainsToken(r.Header.Values("Connection"), "upgrade")
}

// stream is the context of a connection that is no longer HTTP: no request's
// time bounds it, either side ends it, and so does draining.
func (a *Aggregator) stream(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(a.options.Draining, cancel)
	return ctx, func() { stop(); cancel() }
}

// judge lets an answer through that leads nowhere: where a client is led, its
// credentials may follow.
func judge(response *http.Response) error {
	proxy.RemoveCORS(response.Header)
	if response.StatusCode >= 300 && response.StatusCode < 400 && response.Header.Get("Location") != "" {
		return errRedirect
	}
	return nil
}

// rewrite tells the other server who asks, in the words of a front proxy, and
// nothing by which it could ask in the user's name.
func rewrite(p *httputil.ProxyRequest, host string) {
	in, out := p.In, p.Out
	out.URL = &url.URL{Scheme: "https", Host: host, Path: in.URL.Path, RawPath: in.URL.RawPath, RawQuery: in.URL.RawQuery}
	out.Host = host
	out.Header.Del("Authorization")
	for name := range out.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			delete(out.Header, name)
		}
	}
	authn.CommonHeaderNames.Remove(out.Header)
	identify(out.Header, request.UserFrom(in.Context()))
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

// identify names the user in the headers that extension servers read
// (Kubernetes docs, "Configure the Aggregation Layer").
func identify(header http.Header, user *request.User) {
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

// escapeKey makes what may stand in a header's name of any key: what may not
// stand there, and the percent sign itself, is percent-encoded.
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
