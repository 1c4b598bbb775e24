package server

import (
	"net/http"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/discovery"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/negotiation"
	"kctl/apiserver/internal/status"
	"kctl/proto/daemon"
	"kctl/proto/release"
)

// quietly keeps gin from printing routes. The setting is process-wide, and tests
// run several servers in one process.
var quietly = sync.OnceFunc(func() { gin.SetMode(gin.ReleaseMode) })

// handler returns the chain of filters with everything that is served behind
// it. address is where clients reach it.
func (s *surface) handler(address string) (http.Handler, error) {
	quietly()
	router := gin.New()
	router.RedirectTrailingSlash = false
	router.HandleMethodNotAllowed = true
	if err := s.chain(router); err != nil {
		return nil, err
	}
	router.NoMethod(func(c *gin.Context) {
		status.Write(c.Writer, c.Request, handlers.NotAllowed())
	})
	s.installOperations(router)
	if err := s.installIssuer(router, address); err != nil {
		return nil, err
	}
	handling := s.handling()
	handling.Resources, handling.CreateOnly = s.api.served, s.creatable
	handlers.Install(router, handling)
	s.installDocuments(router)
	catalog := discovery.New(s.described, s.objects.more(), s.endpoint.external(address))
	if err := catalog.Install(router); err != nil {
		return nil, err
	}
	router.NoRoute(s.extensions(catalog))
	index(router, catalog, s.health)
	return router, nil
}

// notFound answers requests for paths that don't exist: with a Status below the
// paths of the API, including those of built-in groups, and with plain text
// elsewhere, as kube-apiserver does.
func (s *surface) notFound(c *gin.Context) {
	path := c.Request.URL.Path
	group, named := strings.CutPrefix(path, "/apis/")
	group, _, _ = strings.Cut(group, "/")
	own := func(gv schema.GroupVersion) bool { return gv.Group == group }
	if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/version/") && !(named && slices.ContainsFunc(s.builtin, own)) {
		http.Error(c.Writer, "404 page not found", http.StatusNotFound)
		return
	}
	status.Write(c.Writer, c.Request, apierrors.NewGenericServerResponse(http.StatusNotFound, strings.ToLower(c.Request.Method),
		schema.GroupResource{}, "", "", 0, false))
}

// reading are the methods for what is not a resource; load balancers use HEAD.
var reading = []string{http.MethodGet, http.MethodHead}

// installOperations serves pages about the server itself.
func (s *surface) installOperations(router gin.IRoutes) {
	operations := daemon.Endpoints(s.health, prometheus.Gatherers{s.metrics, s.objects.database.backend.Metrics})
	for _, path := range []string{
		"/healthz", "/healthz/*check", "/livez", "/livez/*check", "/readyz", "/readyz/*check", "/metrics", "/metrics/slis",
	} {
		router.Match(reading, path, func(c *gin.Context) {
			if roundabout(c.Request.URL.Path) || strings.HasSuffix(c.Request.URL.Path, "/") {
				s.notFound(c)
				return
			}
			operations.ServeHTTP(c.Writer, c.Request)
		})
	}
	version := document(func(c *gin.Context) {
		c.Header("Content-Type", "application/json")
		c.IndentedJSON(http.StatusOK, effectiveVersion())
	}, "application/json")
	router.GET("/version", version)
	router.Any("/version/*slashes", func(c *gin.Context) {
		switch {
		case strings.Trim(c.Param("slashes"), "/") != "":
			s.notFound(c)
		case c.Request.Method == http.MethodGet:
			version(c)
		default:
			status.Write(c.Writer, c.Request, handlers.NotAllowed())
		}
	})
	if s.options.Profiling {
		if s.options.Operation.ContentionProfiling {
			runtime.SetBlockProfileRate(1)
		}
		s.installDebug(router)
	}
	s.installPages(router)
	s.installFairnessPages(router)
	router.GET("/debug/relay/namespaces/:namespace/pods/:name", filters.ServeRelay(s.stamps.exchange))
}

// effectiveVersion adds to the release which Kubernetes version's API is spoken,
// and the oldest one whose servers may run beside this one, as upstream does
// without --emulated-version.
func effectiveVersion() version.Info {
	v := daemon.Version()
	v.EmulationMajor, v.EmulationMinor = v.Major, v.Minor
	v.MinCompatibilityMajor, v.MinCompatibilityMinor, _ = strings.Cut(release.Previous, ".")
	return v
}

// installPages serves the server's status pages.
func (s *surface) installPages(router gin.IRoutes) {
	if s.options.Flags() == nil {
		return // started by a test, without a command line
	}
	mux := http.NewServeMux()
	pages := &daemon.Pages{
		Program: "apiserver", Clock: s.clock, Started: s.clock.Now(), Flags: s.options.Flags(),
		Paths: []string{daemon.FlagsPath, "/healthz", "/livez", "/metrics", "/metrics/slis", "/readyz", daemon.StatusPath, "/version"},
	}
	pages.AddTo(mux)
	router.Match(reading, daemon.FlagsPath, gin.WrapH(mux))
	router.Match(reading, daemon.StatusPath, gin.WrapH(mux))
}

// installDebug serves profiles and the log level to users authorized for their
// paths, as upstream's --profiling does.
func (s *surface) installDebug(router gin.IRoutes) {
	debug := gin.WrapH(daemon.Debug(&s.options.Log, s.logger))
	router.Any("/debug/pprof", func(c *gin.Context) { c.Redirect(http.StatusFound, "/debug/pprof/") })
	router.Match(reading, "/debug/pprof/*profile", func(c *gin.Context) {
		if roundabout(c.Request.URL.Path) {
			s.notFound(c)
			return
		}
		debug(c)
	})
	router.GET("/debug/flags", debug)
	router.PUT("/debug/flags/v", debug)
	router.Match(reading, "/debug/flags/v", func(c *gin.Context) { // upstream's answer: it can't be read
		c.Data(http.StatusNotAcceptable, "text/plain", []byte("unsupported http method\n"))
	})
}

// installDocuments serves the description of the API.
func (s *surface) installDocuments(router gin.IRoutes) {
	serve := func(c *gin.Context) {
		if s.objects.aggregator.ServeDocument(c.Writer, c.Request) {
			return
		}
		if err := s.documents.Serve(c.Writer, c.Request); err != nil {
			status.Write(c.Writer, c.Request, err)
		}
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/*group"} {
		router.Match(reading, path, serve)
	}
}

// issuerMayBeKept is for how long others may cache an issuer's keys;
// upstream's.
const issuerMayBeKept = "public, max-age=3600"

// installIssuer serves what others need to check service account tokens.
func (s *surface) installIssuer(router gin.IRoutes, address string) error {
	documents, err := serviceaccount.NewDocuments(s.options.ServiceAccountIssuers[0], s.endpoint.keySetURI(address), s.access.identities.Keys)
	if err != nil {
		return err
	}
	for path, served := range map[string]struct {
		media string
		body  []byte
	}{
		serviceaccount.ConfigurationPath: {"application/json", documents.Configuration},
		serviceaccount.KeySetPath:        {"application/jwk-set+json", documents.KeySet},
	} {
		answer := document(func(c *gin.Context) {
			c.Header("Cache-Control", issuerMayBeKept)
			c.Data(http.StatusOK, served.media, served.body)
		}, served.media)
		router.GET(path, answer)
		router.GET(path+"/", answer)
	}
	return nil
}

// document serves a document that has a single media type to clients that accept it.
func document(serve gin.HandlerFunc, media string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := negotiation.RequireOneOf(c.Request, media); err != nil {
			status.Write(c.Writer, c.Request, err)
			return
		}
		serve(c)
	}
}

// openAPIRelease is the version in API documents: that of the API, as upstream's.
func openAPIRelease() string {
	v := effectiveVersion()
	return v.EmulationMajor + "." + v.EmulationMinor
}

// roundabout reports whether a path has empty or dot segments, for which
// net/http's router would redirect the client.
func roundabout(p string) bool { return path.Clean(p) != strings.TrimSuffix(p, "/") }

// index answers "/" with every path that has no parameters.
func index(router *gin.Engine, catalog *discovery.Catalog, health *daemon.Health) {
	var fixed []string
	for _, route := range router.Routes() {
		if route.Method == http.MethodGet && !strings.ContainsAny(route.Path, ":*") && !strings.HasSuffix(route.Path, "/") &&
			strings.Count(route.Path, "/") <= pathDepth(route.Path) {
			fixed = append(fixed, route.Path)
		}
	}
	router.Match(reading, "/", func(c *gin.Context) {
		paths := slices.Concat(fixed, catalog.Paths(), health.Paths(), []string{"/apis/"})
		slices.Sort(paths)
		c.Header("Content-Type", "application/json")
		c.IndentedJSON(http.StatusOK, gin.H{"paths": slices.Compact(paths)})
	})
}

// pathDepth is the depth of listed paths, which leaves out collections: /api/v1 and
// /apis/GROUP/VERSION are the deepest.
func pathDepth(path string) int {
	if strings.HasPrefix(path, "/api/") {
		return 2
	}
	return 3
}
