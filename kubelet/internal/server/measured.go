package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/proto/daemon"
)

// withMetrics returns what counts and times the requests of one type of server
// (readwrite, readonly) by the beginning of their path, under upstream's names. All
// unknown paths are one class: a client that requests many must not create as many
// metrics.
func withMetrics(registry *prometheus.Registry) func(serverType string) gin.HandlerFunc {
	if registry == nil {
		return func(string) gin.HandlerFunc { return func(*gin.Context) {} }
	}
	labels := []string{"long_running", "method", "path", "server_type"}
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubelet_http_requests_total", Help: "Number of the http requests received since the server started",
	}, labels)
	duration := daemon.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kubelet_http_requests_duration_seconds", Help: "Duration in seconds to serve http requests", Buckets: prometheus.DefBuckets,
	}, labels)
	inflight := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubelet_http_inflight_requests", Help: "Number of the inflight http requests",
	}, labels)
	registry.MustRegister(total, duration, inflight)
	return func(serverType string) gin.HandlerFunc {
		return func(c *gin.Context) {
			values := append(labelsOf(c.Request), serverType)
			began := time.Now()
			total.WithLabelValues(values...).Inc()
			inflight.WithLabelValues(values...).Inc()
			defer func() {
				inflight.WithLabelValues(values...).Dec()
				duration.WithLabelValues(values...).Observe(time.Since(began).Seconds())
			}()
			c.Next()
		}
	}
}

// measuredPaths are the classes of paths, upstream's: of metrics the first two
// elements, of everything else the first one.
var measuredPaths = sets.New("attach", "checkpoint", "configz", "containerLogs", "debug", "exec", "flagz", "healthz", "logs", "metrics",
	"metrics/cadvisor", "metrics/probes", "metrics/resource", "pods", "portForward", "run", "runningpods", "stats", "statusz")

// labelsOf are long_running, method and path of a request, as upstream's kubelet
// tells them: logs and forwarded ports count as short there, too.
func labelsOf(request *http.Request) []string {
	elements := strings.SplitN(strings.TrimPrefix(request.URL.Path, "/"), "/", 3)
	path := elements[0]
	if path == "metrics" && len(elements) > 1 {
		path += "/" + elements[1]
	}
	if !measuredPaths.Has(path) {
		path = "other"
	}
	method := request.Method
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodHead, http.MethodOptions, http.MethodDelete, http.MethodTrace,
		http.MethodConnect:
	default:
		method = "other"
	}
	long := "false"
	switch path {
	case "exec", "attach", "debug":
		long = "true"
	}
	return []string{long, method, path}
}
