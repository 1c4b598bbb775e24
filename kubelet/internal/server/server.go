package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/logs"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/server/auth"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/tracing"
)

// Pods are those that the node should have.
type Pods interface {
	Pods() []*core.Pod
	ByName(namespace, name string) (*core.Pod, bool)
}

// Runtime is what the server needs from the container runtime.
type Runtime interface {
	RuntimeLists
	RuntimeStats
	Streaming
	Checkpointing
}

// RuntimeLists are what the runtime has.
type RuntimeLists interface {
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error)
	ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error)
}

// Config is a Server's parameters.
type Config struct {
	NodeName      string
	Authenticator *auth.Authenticator
	Authorizer    *auth.Authorizer
	Pods          Pods
	// Sandboxes are those that the runtime had when it was last asked, by pod.
	Sandboxes func() []*runtimestate.PodStatus
	// Status is the newest status that the kubelet made for a pod.
	Status  func(uid types.UID) (core.PodStatus, bool)
	Runtime Runtime
	Health  *daemon.Health
	Metrics *prometheus.Registry
	// Configz is the kubelet's configuration as /configz shows it; may be nil.
	Configz func() any
	// Pages are /statusz and /flagz; without flags there is no /flagz.
	Pages daemon.Pages
	// NodeLogs is the directory whose files are served at /logs/; "" to switch that
	// off.
	NodeLogs string
	// NodeLogQueries lets queries at /logs/ ask for the logs of services, from the journal
	// or from files (KubeletConfiguration v1beta1, enableSystemLogQuery).
	NodeLogQueries bool
	// Checkpoints is the directory that archives of containers are written to.
	Checkpoints string
	// Log is changed at /debug/flags/v; nil to switch that off.
	Log *daemon.LogOptions
	// Debugging serves the ways into pods, and what the fields below describe.
	Debugging bool
	// Profiling serves the Go runtime's profiles.
	Profiling bool
	Stats     Stats
	// ProbeMetrics are served at /metrics/probes; may be nil.
	ProbeMetrics *prometheus.Registry
	// Tracer makes a span of every request; nil makes none.
	Tracer *tracing.Tracer
	Clock  clock.Clock
	Logger *zap.Logger
}

// Server answers the kubelet's HTTPS port.
type Server struct {
	Config
	engine *gin.Engine
	// streams reaches the runtime's streaming server.
	streams *http.Transport
	// logWatches are those of all who follow logs.
	logWatches logs.Watches
	rates      rates
	images     sandboxImages
	// While the runtime is silent, containers are measured by their groups: with the rates between
	// these measurements, and the layers that it told of last.
	silent     atomic.Bool
	groupRates rates
	layers     atomic.Pointer[map[string]*runtimeapi.FilesystemUsage]
	measured   func(serverType string) gin.HandlerFunc
}

// New returns a Server that listens nowhere yet.
func New(config Config) (*Server, error) {
	if config.Authenticator == nil || config.Authorizer == nil {
		return nil, errors.New("kubelet server: no authorizer is configured")
	}
	s := &Server{Config: config, engine: newEngine(), measured: withMetrics(config.Metrics), streams: &http.Transport{
		DialContext:       (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		DisableKeepAlives: true,
	}}
	s.engine.Use(s.recover, s.measured("readwrite"))
	if config.Tracer != nil {
		s.engine.Use(withTracing(config.Tracer, config.Clock))
	}
	s.engine.Use(s.authFilter)
	s.routes(s.engine)
	return s, nil
}

func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.UseRawPath = false
	e.RedirectTrailingSlash = false // it answers before authentication
	return e
}

// routes are all routes.
func (s *Server) routes(e *gin.Engine) {
	s.readOnlyRoutes(e)
	e.GET("/configz", s.configz)
	s.statusPageRoutes(e)
	if s.Debugging {
		s.debugRoutes(e)
		return
	}
	noDebugRoutes(e)
}

// readOnlyRoutes are those that upstream's kubelet has at its read-only port, too.
func (s *Server) readOnlyRoutes(e *gin.Engine) {
	e.NoRoute(withoutSlash)
	e.GET("/pods", s.pods)
	e.GET("/pods/", s.pods)
	e.GET("/stats/summary", s.summary)
	e.GET("/metrics/resource", s.resourceMetrics)
	e.GET("/metrics/cadvisor", s.containerMetrics)
	if s.ProbeMetrics != nil {
		e.GET("/metrics/probes", gin.WrapH(promhttp.HandlerFor(s.ProbeMetrics, promhttp.HandlerOpts{})))
	}
	if s.Metrics != nil {
		e.GET("/metrics", gin.WrapH(promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{})))
	}
	if s.Health != nil {
		for _, endpoint := range []string{daemon.Healthz, daemon.Livez, daemon.Readyz} {
			e.GET("/"+endpoint, gin.WrapH(s.Health))
			e.GET("/"+endpoint+"/:check", gin.WrapH(s.Health))
		}
		e.GET(daemon.SLIsPath, gin.WrapH(s.Health.SLIs()))
	}
}

// noDebugRoutes are in place of debugRoutes.
func noDebugRoutes(e *gin.Engine) {
	for _, path := range []string{"/run", "/exec", "/attach", "/portForward", "/containerLogs", "/runningpods", "/debug/pprof", "/logs"} {
		e.Any(path+"/*rest", func(c *gin.Context) { c.String(http.StatusMethodNotAllowed, "Debug endpoints are disabled.\n") })
	}
}

// debugRoutes are what --enable-debugging-handlers=false closes.
func (s *Server) debugRoutes(e *gin.Engine) {
	e.GET("/runningpods", s.runningPods)
	e.GET("/runningpods/", s.runningPods)
	e.GET("/containerLogs/:namespace/:pod/:container", s.containerLogs)
	e.GET("/logs", func(c *gin.Context) {
		to := url.URL{Path: "/logs/", RawQuery: c.Request.URL.RawQuery}
		c.Redirect(http.StatusMovedPermanently, to.String())
	})
	e.GET("/logs/*file", s.nodeLogs())
	debug := gin.WrapH(daemon.Debug(s.Log, s.Logger))
	if s.Profiling {
		e.GET("/debug/pprof/*profile", debug)
	}
	if s.Log != nil {
		e.GET("/debug/flags", debug)
		e.PUT("/debug/flags/v", debug)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		// With or without the pod's UID before the container.
		e.Handle(method, "/exec/:namespace/:pod/:container", s.exec)
		e.Handle(method, "/exec/:namespace/:pod/:container/:last", s.exec)
		e.Handle(method, "/attach/:namespace/:pod/:container", s.attach)
		e.Handle(method, "/attach/:namespace/:pod/:container/:last", s.attach)
		e.Handle(method, "/portForward/:namespace/:pod", s.portForward)
		e.Handle(method, "/portForward/:namespace/:pod/:uid", s.portForward)
	}
	e.POST("/checkpoint/:namespace/:pod/:container", s.checkpoint)
	e.POST("/run/:namespace/:pod/:container", s.run)
	e.POST("/run/:namespace/:pod/:container/:last", s.run)
}

// withoutSlash redirects unknown paths with a superfluous slash.
func withoutSlash(c *gin.Context) {
	trimmed, had := strings.CutSuffix(c.Request.URL.Path, "/")
	if !had || trimmed == "" {
		return
	}
	code := http.StatusMovedPermanently
	if c.Request.Method != http.MethodGet {
		code = http.StatusTemporaryRedirect // by the same method
	}
	to := url.URL{Path: path.Clean(trimmed), RawQuery: c.Request.URL.RawQuery} // "//host" would be elsewhere
	c.Redirect(code, to.String())
}

// statusPageRoutes adds the pages about the program itself; /statusz lists the paths.
func (s *Server) statusPageRoutes(e *gin.Engine) {
	mux := http.NewServeMux()
	s.Pages.Program, s.Pages.Clock = "kubelet", s.Clock
	s.Pages.Paths = []string{daemon.ConfigPath, "/healthz", "/livez", "/logs", "/metrics", "/pods", "/readyz", "/runningpods", "/stats"}
	if s.Pages.Flags != nil {
		s.Pages.Paths = append(s.Pages.Paths, daemon.FlagsPath)
		e.GET(daemon.FlagsPath, gin.WrapH(mux))
	}
	slices.Sort(s.Pages.Paths)
	s.Pages.AddTo(mux)
	e.GET(daemon.StatusPath, gin.WrapH(mux))
}

// ReadOnly answers everybody, without authentication, what says how the node and its pods
// are, and nothing that leads into them.
func (s *Server) ReadOnly() http.Handler {
	e := newEngine()
	e.Use(s.recover, s.measured("readonly"))
	s.readOnlyRoutes(e)
	noDebugRoutes(e)
	return e
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

// ListenOptions is where and as whom the server listens.
type ListenOptions struct {
	Address  string // host:port
	CertFile string
	KeyFile  string
	CertDir  string           // where a self-signed pair is made if none is given
	Clients  *pki.Authorities // whose certificates clients are asked for; nil for none
	DNSNames []string
	IPs      []net.IP
	TLS      daemon.TLSOptions
	// OnListen, if set, is called with the real address.
	OnListen func(net.Addr)
}

// Run listens until ctx ends.
func (s *Server) Run(ctx context.Context, l ListenOptions) error {
	certFile, keyFile, err := pki.ServingFiles(l.CertFile, l.KeyFile, l.CertDir,
		pki.Subject{CommonName: "kubelet", IPs: l.IPs, DNSNames: l.DNSNames}, s.Clock.Now())
	if err != nil {
		return fmt.Errorf("kubelet server: %w", err)
	}
	tlsConfig, err := l.TLS.Serve(certFile, keyFile, l.Clients, s.Clock, s.Logger)
	if err != nil {
		return fmt.Errorf("kubelet server: %w", err)
	}
	listener := daemon.Listener{Address: l.Address, Handler: s, TLS: tlsConfig, Logger: s.Logger, OnListen: l.OnListen}
	return listener.Serve(ctx)
}

// authFilter lets only authenticated and authorized requests through, whatever their
// path.
func (s *Server) authFilter(c *gin.Context) {
	user, err := s.Authenticator.Authenticate(c.Request)
	if errors.Is(err, auth.ErrUnauthenticated) {
		c.Header("WWW-Authenticate", `Bearer realm="kubelet"`)
		s.refuse(c, http.StatusUnauthorized, err)
		return
	}
	if err != nil {
		s.Logger.Error("can't authenticate a request", zap.String("path", c.Request.URL.Path), zap.Error(err))
		s.refuse(c, http.StatusUnauthorized, auth.ErrUnauthenticated)
		return
	}
	if user.Username != core.UserAnonymous {
		daemon.OwnConnection(c.Request.Context(), user.Username)
	}
	err = s.Authorizer.Authorize(c.Request.Context(), user, c.Request.Method, c.Request.URL.Path)
	var denied *auth.Denied
	switch {
	case errors.As(err, &denied):
		s.refuse(c, http.StatusForbidden, err)
	case err != nil:
		s.Logger.Error("can't tell whether a request is allowed", zap.String("path", c.Request.URL.Path), zap.Error(err))
		s.refuse(c, http.StatusInternalServerError, err)
	}
}

// recover keeps a panic in one request from ending the kubelet.
func (s *Server) recover(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(cause) // how a proxy ends a broken answer
		}
		s.Logger.Error("a request's handler panicked", zap.String("path", c.Request.URL.Path), zap.Any("cause", cause), zap.Stack("stack"))
		s.refuse(c, http.StatusInternalServerError, errors.New("internal error"))
	}()
	c.Next()
}

// refuse ends the request with an error's text, as upstream's kubelet does:
// the API server passes it on.
func (s *Server) refuse(c *gin.Context, code int, err error) {
	c.Abort()
	if !c.Writer.Written() {
		http.Error(c.Writer, err.Error(), code)
	}
}
