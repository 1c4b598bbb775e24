package encrypt

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"kctl/apiserver/internal/identity"
	"kctl/proto/daemon"
)

// The two directions, as metrics name them.
const (
	toStorage   = "to_storage"
	fromStorage = "from_storage"
)

// countedKeys is how many keys of key management services are told apart, so that a service
// that changes its key all the time makes no metrics without end; upstream's.
const countedKeys = 100

// metrics have upstream's names.
type metrics struct {
	operations *prometheus.CounterVec
	durations  *prometheus.HistogramVec

	calls     *prometheus.HistogramVec // of key management services
	misses    prometheus.Counter
	seeds     *prometheus.GaugeVec
	keyUses   *prometheus.CounterVec
	keyUsed   *prometheus.GaugeVec
	keyNamed  *prometheus.GaugeVec
	keyFaults *prometheus.CounterVec

	keys  sync.Mutex // held while a key is counted: else another's eviction could come in between
	used  *lru.Cache // the labels of keyUses and keyUsed
	named *lru.Cache // and of keyNamed
}

// newMetrics registers the metrics.
func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_storage_transformation_operations_total",
			Help: "Number of values sealed and opened, by resource, direction, provider and result.",
		}, []string{"resource", "transformation_type", "transformer_prefix", "status"}),
		durations: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_storage_transformation_duration_seconds", Help: "How long values took to seal and open, by direction and provider.",
			Buckets: prometheus.ExponentialBuckets(5e-6, 2, 25),
		}, []string{"transformation_type", "transformer_prefix"}),
	}
	m.addServices()
	registry.MustRegister(m.operations, m.durations, m.calls, m.misses, m.seeds, m.keyFaults)
	identity.Registerer(registry).MustRegister(m.keyUses, m.keyUsed, m.keyNamed)
	return m
}

// addServices adds the metrics of key management services.
func (m *metrics) addServices() {
	const prefix = "apiserver_envelope_encryption_"
	key := []string{"transformation_type", "provider_name", "key_id_hash"}
	m.calls = daemon.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "kms_operations_latency_seconds", Help: "How long calls of key management services took, by provider, method and result.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 20),
	}, []string{"provider_name", "method_name", "grpc_status_code"})
	m.misses = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apiserver_storage_envelope_transformation_cache_misses_total",
		Help: "Number of values whose seed a key management service had to open.",
	})
	m.seeds = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "dek_source_cache_size", Help: "Number of seeds that are remembered, by provider.",
	}, []string{"provider_name"})
	m.keyUses = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "key_id_hash_total", Help: "Number of values sealed and opened with a service's key, by direction, provider and key.",
	}, key)
	m.keyUsed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "key_id_hash_last_timestamp_seconds", Help: "When a service's key was last used, by direction, provider and key.",
	}, key)
	m.keyNamed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "key_id_hash_status_last_timestamp_seconds", Help: "When a service's status last named a key, by provider and key.",
	}, key[1:])
	m.keyFaults = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "invalid_key_id_from_status_total",
		Help: "Number of times that a service's status named no valid key, by provider and fault.",
	}, []string{"provider_name", "error"})
	m.used = lru.NewWithEvictionFunc(countedKeys, func(labels lru.Key, _ any) {
		l := labels.([3]string)
		m.keyUses.DeleteLabelValues(l[:]...)
		m.keyUsed.DeleteLabelValues(l[:]...)
	})
	m.named = lru.NewWithEvictionFunc(countedKeys, func(labels lru.Key, _ any) {
		l := labels.([2]string)
		m.keyNamed.DeleteLabelValues(l[:]...)
	})
}

// transformed counts a value that was sealed or opened. A provider with keys has two labels, as
// upstream's are two in one: its kind, and the key.
func (m *metrics) transformed(of schema.GroupResource, direction string, labels []string, took time.Duration, err error) {
	for _, label := range labels {
		m.operations.WithLabelValues(of.String(), direction, label, codeOf(err)).Inc()
		if err == nil {
			m.durations.WithLabelValues(direction, label).Observe(took.Seconds())
		}
	}
}

// codeOf is the result of an operation.
func codeOf(err error) string {
	if err == nil {
		return codes.OK.String()
	}
	if s, ok := status.FromError(err); ok {
		return s.Code().String()
	}
	return "unknown-non-grpc" // it did not come to a call
}

// keyHasBeenUsed counts a value that was sealed or opened with a service's key.
func (m *metrics) keyHasBeenUsed(direction, provider, keyID string, now time.Time) {
	labels := [3]string{direction, provider, identity.Hash(keyID)}
	m.keys.Lock()
	defer m.keys.Unlock()
	m.used.Add(labels, nil)
	m.keyUses.WithLabelValues(labels[:]...).Inc()
	m.keyUsed.WithLabelValues(labels[:]...).Set(seconds(now))
}

// checkNamed returns an error for the key in a service's status if it is none.
func (m *metrics) checkNamed(provider, keyID string, now time.Time) error {
	switch {
	case keyID == "":
		m.keyFaults.WithLabelValues(provider, "empty").Inc()
		return errors.New("its key id is missing")
	case len(keyID) > maxKeyID:
		m.keyFaults.WithLabelValues(provider, "too_long").Inc()
		return errors.New("its key id is too long")
	}
	labels := [2]string{provider, identity.Hash(keyID)}
	m.keys.Lock()
	defer m.keys.Unlock()
	m.named.Add(labels, nil)
	m.keyNamed.WithLabelValues(labels[:]...).Set(seconds(now))
	return nil
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// timeCalls times the calls of a key management service.
func (m *metrics) timeCalls(provider string, clock clock.PassiveClock) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, call grpc.UnaryInvoker,
		options ...grpc.CallOption) error {
		began := clock.Now()
		err := call(ctx, method, request, reply, connection, options...)
		m.calls.WithLabelValues(provider, method, codeOf(err)).Observe(clock.Since(began).Seconds())
		return err
	}
}
