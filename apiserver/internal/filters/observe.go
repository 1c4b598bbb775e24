package filters

import (
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
	"kctl/proto/daemon"
)

// Observe writes one log line and counts each request, under upstream's metric
// names so that dashboards carry over. served reports whether a resource without
// a route is served: custom resources come and go.
func Observe(registry prometheus.Registerer, clock clock.PassiveClock, served func(*request.Info) bool,
	logger *zap.Logger) gin.HandlerFunc {
	m := newRequestMetrics(registry)
	return func(c *gin.Context) {
		info := request.InfoFrom(c.Request.Context())
		known := info.Resource && (c.FullPath() != "" || served(info))
		labels := labelsOf(c, info, known)
		if info.LongRunning() {
			running := m.longRunning.WithLabelValues(append(labels[:6:6], labels[7])...)
			running.Inc()
			defer running.Dec()
		}
		// Deferred, so that a request that breaks its connection is seen too.
		defer func() {
			elapsed := clock.Since(request.ReceivedFrom(c.Request.Context()))
			code := c.Writer.Status()
			m.total.WithLabelValues(append(labels, strconv.Itoa(code))...).Inc()
			m.duration.WithLabelValues(labels...).Observe(elapsed.Seconds())
			if !info.LongRunning() && labels[6] == "" {
				own := elapsed - request.WaitedFrom(c.Request.Context())
				m.own.WithLabelValues(append(labels[:6:6], labels[7])...).Observe(own.Seconds())
			}
			m.remark(c, known || labels[4] != "", labels)
			level := zapcore.DebugLevel
			if code >= 500 {
				level = zapcore.InfoLevel
			}
			if line := logger.Check(level, "request"); line != nil {
				fields := []zap.Field{
					zap.String("verb", info.Verb), zap.String("uri", c.Request.RequestURI), zap.Int("code", code),
					zap.Duration("latency", elapsed), zap.String("userAgent", c.Request.UserAgent()),
					zap.String("auditID", request.IDFrom(c.Request.Context())),
				}
				if user := request.UserFrom(c.Request.Context()); user != nil {
					fields = append(fields, zap.String("user", user.Username))
				}
				line.Write(fields...)
			}
		}()
		c.Next()
	}
}

// remark counts what not every request has: a size, a deprecated resource, or an
// end forced by the server.
func (m *requestMetrics) remark(c *gin.Context, known bool, labels []string) {
	if known && (labels[0] == "GET" || labels[0] == "LIST") {
		m.sizes.WithLabelValues(append(labels[:6:6], labels[7])...).Observe(float64(max(c.Writer.Size(), 0)))
	}
	ctx := c.Request.Context()
	if request.Deprecated(ctx) {
		m.deprecated.WithLabelValues(append(labels[1:5:5], "")...).Set(1)
	}
	if request.Terminated(ctx) {
		m.terminated.WithLabelValues(append(labels[:6:6], labels[7], strconv.Itoa(c.Writer.Status()))...).Inc()
	}
}

type requestMetrics struct {
	total       *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	own         *prometheus.HistogramVec // without what others took
	longRunning *prometheus.GaugeVec
	sizes       *prometheus.HistogramVec // of what was read
	deprecated  *prometheus.GaugeVec
	terminated  *prometheus.CounterVec
}

func newRequestMetrics(registry prometheus.Registerer) *requestMetrics {
	names := []string{"verb", "group", "version", "resource", "subresource", "scope", "dry_run", "component"}
	m := &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total",
			Help: "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, " +
				"component, and HTTP response code.",
		}, append(names, "code")),
		duration: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds",
			Help: "Response latency distribution in seconds for each verb, dry run value, group, version, resource, " +
				"subresource, scope and component.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, names),
		own: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_sli_duration_seconds",
			Help: "Response latency distribution in seconds, without the time that webhooks and queues took, for each verb, group, version, " +
				"resource, subresource, scope and component.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, append(names[:6:6], "component")),
		longRunning: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests",
			Help: "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource and scope.",
		}, append(names[:6:6], "component")),
		sizes: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_response_sizes",
			Help:    "Sizes of the answers to reading requests in bytes for each verb, group, version, resource, subresource, scope and component.",
			Buckets: prometheus.ExponentialBuckets(1000, 10, 7),
		}, append(names[:6:6], "component")),
		deprecated: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_requested_deprecated_apis",
			Help: "Deprecated versions of resources that have been asked for, by group, version, resource, subresource and " +
				"the release in which they go.",
		}, append(names[1:5:5], "removed_release")),
		terminated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_terminations_total",
			Help: "Requests that the server ended in its own defence: there was no room for them, or they took too long.",
		}, append(names[:6:6], "component", "code")),
	}
	registry.MustRegister(m.total, m.duration, m.own, m.longRunning, m.sizes, m.deprecated, m.terminated)
	return m
}

// labelsOf describes the request. Only served resources appear by name, so that
// clients can't invent labels.
func labelsOf(c *gin.Context, info *request.Info, known bool) []string {
	labels := []string{metricVerb(c, info), "", "", "", "", "", "", "apiserver"}
	switch {
	case known:
		labels[1], labels[2], labels[3], labels[4], labels[5] = info.APIGroup, info.APIVersion, info.ResourceName, info.Subresource, scopeOf(info)
	case !info.Resource:
		labels[4], labels[7] = pathClass(c.Request.URL.Path)
	}
	if c.Query("dryRun") == "All" {
		labels[6] = "All"
	}
	return labels
}

// pathClass is what kube-apiserver counts a path that is no resource's as: the labels
// subresource and component. Those that it does not count are one class.
func pathClass(path string) (subresource, component string) {
	switch path = strings.TrimSuffix(path, "/"); path {
	case "/healthz", "/livez", "/readyz":
		return path, ""
	case "/api", "/apis":
		return path[1:], "apiserver"
	case "/openapi/v3":
		return path[1:], ""
	}
	if strings.HasPrefix(path, "/openapi/v3/") {
		return "openapi/v3/", ""
	}
	return "", "apiserver"
}

func scopeOf(info *request.Info) string {
	switch {
	case info.Name != "" || info.Verb == "create":
		return "resource"
	case info.Namespace != "":
		return "namespace"
	}
	return "cluster"
}

func metricVerb(c *gin.Context, info *request.Info) string {
	if info.Resource && info.LongRunning() && info.Verb != "watch" {
		return "CONNECT"
	}
	switch info.Verb {
	case "create":
		return "POST"
	case "update":
		return "PUT"
	case "deletecollection":
		return "DELETE"
	case "patch":
		if info.Resource && c.ContentType() == string(types.ApplyPatchType) {
			return "APPLY"
		}
		return "PATCH"
	case "get", "list", "watch", "post", "put", "delete", "head", "options", "proxy":
		return strings.ToUpper(info.Verb)
	}
	return "other"
}
