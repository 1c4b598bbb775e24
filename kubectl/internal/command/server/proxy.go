package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	clientrest "k8s.io/client-go/rest"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/upgrade"
)

// proxyOptions has the flags of one `kctl proxy`.
type proxyOptions struct {
	*frame.CLI
	port                int
	address, unixSocket string
	prefix              string
	acceptHosts         string
	acceptPaths         string
	rejectPaths         string
	rejectMethods       string
	www, wwwPrefix      string
	disableFilter       bool
	appendServerPath    bool
	keepalive           time.Duration
}

// defaultPort is where a proxy is that is not told otherwise, or told so.
const defaultPort = 8001

func newProxy(c *frame.CLI) *cobra.Command {
	p := &proxyOptions{CLI: c}
	cmd := &cobra.Command{
		Use:   "proxy [--port=PORT] [--www=static-dir] [--www-prefix=prefix] [--api-prefix=prefix]",
		Short: "Run a proxy to the API server",
		Long: "Run a proxy to the API server.\n\n" +
			"Whoever reaches it acts as you: it listens on loopback unless told otherwise, and answers only requests for its own name.",
		Example: "  kctl proxy --port=8080 &\n  curl http://localhost:8080/api/v1/pods",
		Args:    frame.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.IntVarP(&p.port, "port", "p", defaultPort, "The port on which to run the proxy. Set to 0 to pick a random port.")
	fs.StringVar(&p.address, "address", "127.0.0.1", "The IP address on which to serve on.")
	fs.StringVarP(&p.unixSocket, "unix-socket", "u", "", "Unix socket on which to run the proxy.")
	fs.StringVar(&p.prefix, "api-prefix", "/", "Prefix to serve the proxied API under.")
	fs.StringVarP(&p.www, "www", "w", "", "Also serve static files from the given directory under the specified prefix.")
	fs.StringVarP(&p.wwwPrefix, "www-prefix", "P", "/static/", "Prefix to serve static files under, if static file directory is specified.")
	fs.StringVar(&p.acceptHosts, "accept-hosts", `^localhost$,^127\.0\.0\.1$,^\[::1\]$`,
		"Regular expression for hosts that the proxy should accept.")
	fs.StringVar(&p.acceptPaths, "accept-paths", "^.*", "Regular expression for paths that the proxy should accept.")
	fs.StringVar(&p.rejectPaths, "reject-paths", "^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach",
		"Regular expression for paths that the proxy should reject. Paths specified here will be rejected even accepted by --accept-paths.")
	fs.StringVar(&p.rejectMethods, "reject-methods", "^$",
		"Regular expression for HTTP methods that the proxy should reject (example --reject-methods='POST,PUT,PATCH').")
	fs.BoolVar(&p.disableFilter, "disable-filter", false,
		"If true, disable request filtering in the proxy. This is dangerous, and can leave you vulnerable to XSRF attacks, when "+
			"used with an accessible port.")
	fs.BoolVar(&p.appendServerPath, "append-server-path", false,
		"If true, put the path of the kubeconfig's server before that of each request.")
	fs.DurationVar(&p.keepalive, "keepalive", 0,
		"How often TCP asks on connections to the API server that are upgraded, those of exec and port-forward, whether it is still there; "+
			"zero means as often as on others.")
	return cmd
}

// requestFilter says which requests may pass.
type requestFilter struct{ hosts, paths, notPaths, notMethods []*regexp.Regexp }

func (p *proxyOptions) filter() (*requestFilter, error) {
	f := &requestFilter{}
	for _, each := range []struct {
		text string
		into *[]*regexp.Regexp
	}{{p.acceptHosts, &f.hosts}, {p.acceptPaths, &f.paths}, {p.rejectPaths, &f.notPaths}, {p.rejectMethods, &f.notMethods}} {
		for text := range strings.SplitSeq(each.text, ",") {
			compiled, err := regexp.Compile(text)
			if err != nil {
				return nil, err
			}
			*each.into = append(*each.into, compiled)
		}
	}
	return f, nil
}

func anyMatches(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

// ofHere says that the request is meant for this proxy, and comes from nowhere else.
func (f *requestFilter) ofHere(r *http.Request) bool { return f.acceptsHost(r.Host) && f.fromHere(r) }

// ofAPI says that what the request asks of the API is let through. Its path is the API's, without
// the prefix of the proxy.
func (f *requestFilter) ofAPI(r *http.Request) bool {
	return anyMatches(f.paths, r.URL.Path) && !anyMatches(f.notPaths, r.URL.Path) && !anyMatches(f.notMethods, r.Method)
}

// only passes on what is accepted.
func only(accepted func(*http.Request) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !accepted(r) {
			http.Error(w, "Forbidden", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromHere says that the request does not come from a web page of another origin. A
// browser does not show such a page the answer, but it sends the request, and lets it
// read a WebSocket completely: watched secrets, for example.
func (f *requestFilter) fromHere(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && (from.Host == r.Host || f.acceptsHost(from.Host))
}

// acceptsHost reports whether the host is accepted.
func (f *requestFilter) acceptsHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		if host = name; strings.Contains(name, ":") {
			host = "[" + name + "]"
		}
	}
	return anyMatches(f.hosts, host)
}

// handler passes what the filter accepts on to the API server, as the user.
func (p *proxyOptions) handler() (http.Handler, error) {
	f, err := p.filter()
	if err != nil {
		return nil, err
	}
	client, err := p.Server()
	if err != nil {
		return nil, err
	}
	config, err := p.upgrading()
	if err != nil {
		return nil, err
	}
	upgraded, err := clientrest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	to := client.URL("")
	if !p.appendServerPath {
		if strings.Trim(to.Path, "/") != "" {
			p.Warn("Your kube context contains a server path %s, use --append-server-path to automatically append the path to each request", to.Path)
		}
		to.Path = ""
	}
	forward := forwardTo(to, upgradeTransport{client.HTTP().Transport, upgraded})
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { upgrade.Serve(forward, w, r) })
	if p.disableFilter {
		return p.routes(api), nil
	}
	return p.filtered(f, api), nil
}

// filtered is the proxy's routes with what f lets through.
func (p *proxyOptions) filtered(f *requestFilter, api http.Handler) http.Handler {
	return only(f.ofHere, p.routes(only(f.ofAPI, api)))
}

// forwardTo passes requests on to the server, by a transport that adds the user's credentials.
func forwardTo(to *url.URL, transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, // watches and logs are passed on as they arrive
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = to.Host
			r.Out.Header.Del("Authorization") // the user's own credentials are added
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "kctl proxy: "+err.Error(), http.StatusBadGateway)
		},
	}
}

// routes serves the API, and files of this machine beside it, each below its prefix.
func (p *proxyOptions) routes(api http.Handler) http.Handler {
	mux := http.NewServeMux()
	prefix := "/" + strings.Trim(p.prefix, "/")
	if prefix == "/" {
		mux.Handle("/", api)
	} else {
		mux.Handle(prefix+"/", http.StripPrefix(prefix, api))
	}
	if p.www != "" {
		under := "/" + strings.Trim(p.wwwPrefix, "/") + "/"
		mux.Handle(under, http.StripPrefix(under, http.FileServer(http.Dir(p.www))))
	}
	return mux
}

// upgradeTransport sends upgrade requests over HTTP/1.1, which they need.
type upgradeTransport struct{ plain, upgraded http.RoundTripper }

func (c upgradeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return c.upgraded.RoundTrip(r)
	}
	return c.plain.RoundTrip(r)
}

// upgrading is how connections are made that are upgraded.
func (p *proxyOptions) upgrading() (*clientrest.Config, error) {
	loaded, err := p.Kubeconfig()
	if err != nil {
		return nil, err
	}
	config := clientrest.CopyConfig(loaded.Client)
	config.NextProtos = []string{"http/1.1"}
	if p.keepalive != 0 {
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: p.keepalive}).DialContext
	}
	return config, nil
}

func (p *proxyOptions) run(ctx context.Context) error {
	if p.port != defaultPort && p.unixSocket != "" {
		return errors.New("cannot set --unix-socket and --port at the same time")
	}
	if _, err := os.Stat(p.www); p.www != "" && err != nil {
		p.Warn("Failed to stat static file directory %s: %v", p.www, err)
	}
	if p.disableFilter && p.unixSocket == "" {
		p.Warn("Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious")
	}
	handler, err := p.handler()
	if err != nil {
		return err
	}
	listener, err := p.listen(ctx)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer ended()
	fmt.Fprintf(p.Out, "Starting to serve on %s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// listen takes the place of a socket that an earlier proxy left, and of no other file.
// Only the user may connect to the socket: who does acts as the user.
func (p *proxyOptions) listen(ctx context.Context) (net.Listener, error) {
	if p.unixSocket == "" {
		return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(p.address, fmt.Sprint(p.port)))
	}
	if info, err := os.Lstat(p.unixSocket); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(p.unixSocket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("unix socket: %w", err)
		}
	}
	others := unix.Umask(0o077) // a socket has no mode before it is there for all
	defer unix.Umask(others)
	return (&net.ListenConfig{}).Listen(ctx, "unix", p.unixSocket)
}
