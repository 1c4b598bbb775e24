package measured

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/storage"
	"kctl/proto/daemon"
	"kctl/proto/tracing"
)

// Metrics are upstream's metrics of storage requests.
type Metrics struct {
	duration *prometheus.HistogramVec
	total    *prometheus.CounterVec
	failed   *prometheus.CounterVec
}

// NewMetrics returns metrics registered with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	labels := []string{"operation", "group", "resource"}
	m := &Metrics{
		duration: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "etcd_request_duration_seconds", Help: "Etcd request latency in seconds for each operation and resource.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, labels),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcd_requests_total", Help: "Etcd request counts for each operation and resource.",
		}, labels),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcd_request_errors_total", Help: "Etcd failed request counts for each operation and resource.",
		}, labels),
	}
	registry.MustRegister(m.duration, m.total, m.failed)
	return m
}

// CacheMetrics are upstream's metrics of what watch caches do with storage, by group and
// resource.
type CacheMetrics struct {
	Received  *prometheus.CounterVec   // changes
	ReadWaits *prometheus.HistogramVec // in seconds, of readers
}

// NewCacheMetrics returns metrics registered with registry.
func NewCacheMetrics(registry prometheus.Registerer) *CacheMetrics {
	labels := []string{"group", "resource"}
	m := &CacheMetrics{
		Received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_storage_events_received_total", Help: "Number of changes that etcd has told of, by group and resource.",
		}, labels),
		ReadWaits: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_watch_cache_read_wait_seconds", Help: "How long reads waited for a watch cache to become fresh.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3},
		}, labels),
	}
	registry.MustRegister(m.Received, m.ReadWaits)
	return m
}

// Store is a store whose requests are timed. Methods that it does not override
// are passed on.
type Store struct {
	storage.Interface
	Metrics *Metrics
	Clock   clock.PassiveClock
	// of is the resource whose requests these are, the zero value for those of none.
	of schema.GroupResource
}

// Of returns the store for the requests of one resource, which are counted as its own
// if the store is a measured one.
func Of(resource schema.GroupResource, store storage.Interface) storage.Interface {
	if s, ok := store.(Store); ok {
		s.of = resource
		return s
	}
	return store
}

// call is one operation that is being timed.
type call struct {
	store     Store
	request   context.Context //nolint:containedctx // whose time it is
	operation string
	started   time.Time
	span      trace.Span
}

// begin times an operation, in a span of its own if the request is traced.
func (s Store) begin(ctx context.Context, operation, span, key string) (context.Context, call) {
	c := call{store: s, request: ctx, operation: operation, started: s.Clock.Now()}
	ctx, c.span = tracing.Step(ctx, span)
	if c.span.IsRecording() {
		c.span.SetAttributes(attribute.String("key", key))
	}
	return ctx, c
}

func (c call) end(err error) {
	m, of := c.store.Metrics, c.store.of
	m.total.WithLabelValues(c.operation, of.Group, of.Resource).Inc()
	took := c.store.Clock.Since(c.started)
	m.duration.WithLabelValues(c.operation, of.Group, of.Resource).Observe(took.Seconds())
	request.Spent(c.request, request.Storage, took)
	for _, expected := range []error{storage.ErrNotFound, storage.ErrExists, storage.ErrConflict, context.Canceled} {
		if errors.Is(err, expected) {
			err = nil
		}
	}
	if err != nil {
		m.failed.WithLabelValues(c.operation, of.Group, of.Resource).Inc()
	}
	tracing.End(c.span, err)
}

// Create implements storage.Writer.
func (s Store) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Object, error) {
	ctx, c := s.begin(ctx, "create", "Create etcd3", key)
	object, err := s.Interface.Create(ctx, key, value, ttl)
	c.end(err)
	return object, err
}

// Update implements storage.Writer.
func (s Store) Update(ctx context.Context, key string, revision int64, value []byte, ttl time.Duration) (storage.Object, error) {
	ctx, c := s.begin(ctx, "update", "GuaranteedUpdate etcd3", key)
	object, err := s.Interface.Update(ctx, key, revision, value, ttl)
	c.end(err)
	return object, err
}

// Delete implements storage.Writer.
func (s Store) Delete(ctx context.Context, key string, revision int64) (storage.Object, error) {
	ctx, c := s.begin(ctx, "delete", "Delete etcd3", key)
	object, err := s.Interface.Delete(ctx, key, revision)
	c.end(err)
	return object, err
}

// Get implements storage.Reader.
func (s Store) Get(ctx context.Context, key string) (storage.Object, error) {
	ctx, c := s.begin(ctx, "get", "Get etcd3", key)
	object, err := s.Interface.Get(ctx, key)
	c.end(err)
	return object, err
}

// List implements storage.Reader.
func (s Store) List(ctx context.Context, prefix, after string, limit, revision int64) ([]storage.Object, int64, int64, error) {
	ctx, c := s.begin(ctx, "list", "List etcd3", prefix)
	objects, at, remaining, err := s.Interface.List(ctx, prefix, after, limit, revision)
	c.end(err)
	return objects, at, remaining, err
}
