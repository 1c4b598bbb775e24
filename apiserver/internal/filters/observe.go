package filters

import (
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
)

// Observe writes one log line and counts each request, under upstream's metric
// names so that dashboards carry over.
func Observe(registry prometheus.Registerer, clock clock.PassiveClock, logger *zap.Logger) gin.HandlerFunc {
	m := newRequestMetrics(registry)
	return func(c *gin.Context) {
		info := request.InfoFrom(c.Request.Context())
		labels := labelsOf(c, info)
		if info.LongRunning() {
			running := m.longRunning.WithLabelValues(labels[:6]...)
			running.Inc()
			defer running.Dec()
		}
		// Deferred, so that a request that breaks its connection is seen too.
		defer func() {
			elapsed := clock.Since(request.ReceivedFrom(c.Request.Context()))
			code := c.Writer.Status()
			m.total.WithLabelValues(append(labels, strconv.Itoa(code))...).Inc()
			if !info.LongRunning() {
				m.duration.WithLabelValues(labels...).Observe(elapsed.Seconds())
				own := elapsed - request.WaitedFrom(c.Request.Context())
				m.own.WithLabelValues(append(labels[:6:6], labels[7])...).Observe(own.Seconds())
			}
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

type requestMetrics struct {
	total       *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	own         *prometheus.HistogramVec // without what others took
	longRunning *prometheus.GaugeVec
}

func newRequestMetrics(registry prometheus.Registerer) *requestMetrics {
	names := []string{"verb", "group", "version", "resource", "subresource", "scope", "dry_run", "component"}
	m := &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
		}, append(names, "code")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 45, 60},
			// Who scrapes protobuf gets a native histogram beside the buckets
			// (NativeHistograms, on in kube-apiserver since 1.37): a tenth more from
			// one bucket to the next, in a bounded number of them.
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, names),
		own: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_sli_duration_seconds", Help: "Response latency distribution in seconds, without the time that webhooks and queues took, for each verb, group, version, resource, subresource, scope and component.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, append(names[:6:6], "component")),
		longRunning: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests", Help: "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource and scope.",
		}, names[:6]),
	}
	registry.MustRegister(m.total, m.duration, m.own, m.longRunning)
	return m
}

// labelsOf describes the request. Only paths that are served appear by name,
// so that clients can't make labels up.
func labelsOf(c *gin.Context, info *request.Info) []string {
	labels := []string{metricVerb(info), "", "", "", "", "", "", "apiserver"}
	if info.Resource && c.FullPath() != "" {
		labels[1], labels[2], labels[3], labels[4], labels[5] = info.APIGroup, info.APIVersion, info.ResourceName, info.Subresource, scopeOf(info)
	}
	if c.Query("dryRun") == "All" {
		labels[6] = "All"
	}
	return labels
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

func metricVerb(info *request.Info) string {
	if info.Resource && info.LongRunning() && info.Verb != "watch" {
		return "CONNECT"
	}
	switch info.Verb {
	case "create":
		return "POST"
	case "update":
		return "PUT"
	case "get", "list", "watch", "post", "put", "patch", "delete", "deletecollection", "head", "options", "proxy":
		return strings.ToUpper(info.Verb)
	}
	return "other"
}
