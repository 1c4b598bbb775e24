package handlers

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// Meter measures requests' bodies and what is sent to watches, under upstream's names. The nil
// Meter measures nothing.
type Meter struct {
	bodies *prometheus.HistogramVec
	events *prometheus.CounterVec
	sizes  *prometheus.HistogramVec
	lists  *prometheus.HistogramVec
}

// NewMeter returns a Meter whose metrics are registered.
func NewMeter(registry prometheus.Registerer) *Meter {
	resource := []string{"group", "version", "resource"}
	m := &Meter{
		bodies: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_body_size_bytes", Help: "Sizes of requests' bodies in bytes, by group, resource and verb.",
			Buckets: prometheus.LinearBuckets(50_000, 100_000, 31),
		}, []string{"group", "resource", "verb"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_events_total", Help: "Events that were sent to watches, by group, version and resource.",
		}, resource),
		sizes: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_watch_events_sizes", Help: "Sizes of the events that were sent to watches, in bytes.",
			Buckets: prometheus.ExponentialBuckets(1024, 2, 8),
		}, resource),
		lists: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_watch_list_duration_seconds",
			Help:    "How long watches that begin with what is there (sendInitialEvents) took to send it, by group, version, resource and scope.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300},
		}, append(resource, "scope")),
	}
	registry.MustRegister(m.bodies, m.events, m.sizes, m.lists)
	return m
}

// read counts a body that was read.
func (m *Meter) read(ctx context.Context, r core.Resource, bytes int) {
	if m == nil {
		return
	}
	verb := request.InfoFrom(ctx).Verb
	if verb == "deletecollection" {
		verb = "delete_collection" // as upstream has it
	}
	m.bodies.WithLabelValues(r.Group, r.Name, verb).Observe(float64(bytes))
}

// eventMeter measures the events of one watch.
type eventMeter struct {
	events prometheus.Counter
	sizes  prometheus.Observer
}

func (m *Meter) eventsOf(r core.Resource) eventMeter {
	if m == nil {
		return eventMeter{}
	}
	return eventMeter{m.events.WithLabelValues(r.Group, r.Version, r.Name), m.sizes.WithLabelValues(r.Group, r.Version, r.Name)}
}

func (m *eventMeter) observe(bytes int) {
	if m.events != nil {
		m.events.Inc()
		m.sizes.Observe(float64(bytes))
	}
}
