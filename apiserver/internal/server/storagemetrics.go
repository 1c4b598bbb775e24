package server

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
)

// storageMetrics are upstream's, so that dashboards carry over.
type storageMetrics struct {
	duration *prometheus.HistogramVec
	total    *prometheus.CounterVec
	failed   *prometheus.CounterVec
}

func newStorageMetrics(registry prometheus.Registerer) *storageMetrics {
	labels := []string{"operation", "type"}
	m := &storageMetrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "etcd_request_duration_seconds", Help: "Etcd request latency in seconds for each operation and object type.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, labels),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcd_requests_total", Help: "Etcd request counts for each operation and object type.",
		}, labels),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcd_request_errors_total", Help: "Etcd failed request counts for each operation and object type.",
		}, labels),
	}
	registry.MustRegister(m.duration, m.total, m.failed)
	return m
}

// measured times the requests of a store.
type measured struct {
	storage.Interface
	metrics *storageMetrics
	clock   clock.PassiveClock
}

func (m measured) observe(operation, key string, started time.Time, err error) {
	kind := typeOf(key)
	m.metrics.total.WithLabelValues(operation, kind).Inc()
	m.metrics.duration.WithLabelValues(operation, kind).Observe(m.clock.Since(started).Seconds())
	for _, expected := range []error{storage.ErrNotFound, storage.ErrExists, storage.ErrConflict, context.Canceled} {
		if err == nil || errors.Is(err, expected) {
			return
		}
	}
	m.metrics.failed.WithLabelValues(operation, kind).Inc()
}

// typeOf is the resource in a key or prefix "/registry/pods/default/web".
func typeOf(key string) string {
	parts := strings.SplitN(strings.TrimPrefix(key, "/"), "/", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

func (m measured) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Object, error) {
	started := m.clock.Now()
	object, err := m.Interface.Create(ctx, key, value, ttl)
	m.observe("create", key, started, err)
	return object, err
}

func (m measured) Update(ctx context.Context, key string, revision int64, value []byte, ttl time.Duration) (storage.Object, error) {
	started := m.clock.Now()
	object, err := m.Interface.Update(ctx, key, revision, value, ttl)
	m.observe("update", key, started, err)
	return object, err
}

func (m measured) Delete(ctx context.Context, key string, revision int64) (storage.Object, error) {
	started := m.clock.Now()
	object, err := m.Interface.Delete(ctx, key, revision)
	m.observe("delete", key, started, err)
	return object, err
}

func (m measured) Get(ctx context.Context, key string) (storage.Object, error) {
	started := m.clock.Now()
	object, err := m.Interface.Get(ctx, key)
	m.observe("get", key, started, err)
	return object, err
}

func (m measured) List(ctx context.Context, prefix, after string, limit, revision int64) ([]storage.Object, int64, int64, error) {
	started := m.clock.Now()
	objects, at, remaining, err := m.Interface.List(ctx, prefix, after, limit, revision)
	m.observe("list", prefix, started, err)
	return objects, at, remaining, err
}
