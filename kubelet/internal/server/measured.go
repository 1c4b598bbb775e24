package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
)

// withMetrics returns what counts and times the requests of one type of server
// (readwrite, readonly) by the first element of their path, under upstream's names. All
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
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kubelet_http_requests_duration_seconds", Help: "Duration in seconds to serve http requests", Buckets: prometheus.DefBuckets,
	}, labels)
	inflight := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubelet_http_inflight_requests", Help: "Number of the inflight http requests",
	}, labels)
	registry.MustRegister(total, duration, inflight)
	return func(serverType string) gin.HandlerFunc {
		return func(c *gin.Context) {
			values := append(labelsOf(c), serverType)
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

// labelsOf are long_running, method and path of a request.
func labelsOf(c *gin.Context) []string {
	path, _, _ := strings.Cut(strings.TrimPrefix(c.FullPath(), "/"), "/")
	if c.FullPath() == "" {
		path = "other"
	}
	method := c.Request.Method
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodHead, http.MethodOptions, http.MethodDelete, http.MethodPatch:
	default:
		method = "other"
	}
	long := "false"
	switch path {
	case "exec", "attach", "portForward", "debug", "containerLogs":
		long = "true"
	}
	return []string{long, method, path}
}
