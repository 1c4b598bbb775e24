package handlers

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/core"
	"kctl/proto/daemon"
)

// WatchMeter measures what is sent to watches, under upstream's names. The nil
// WatchMeter measures nothing.
type WatchMeter struct {
	events *prometheus.CounterVec
	sizes  *prometheus.HistogramVec
	lists  *prometheus.HistogramVec
}

// NewWatchMeter returns a WatchMeter whose metrics are registered.
func NewWatchMeter(registry prometheus.Registerer) *WatchMeter {
	resource := []string{"group", "version", "resource"}
	m := &WatchMeter{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_events_total", Help: "Events that were sent to watches, by group, version and resource.",
		}, resource),
		sizes: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_watch_events_sizes", Help: "Sizes of the events that were sent to watches, in bytes.",
			Buckets: prometheus.ExponentialBuckets(1024, 2, 8),
		}, resource),
		lists: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_watch_list_duration_seconds", Help: "How long watches that begin with what is there (sendInitialEvents) took to send it, by group, version, resource and scope.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300},
		}, append(resource, "scope")),
	}
	registry.MustRegister(m.events, m.sizes, m.lists)
	return m
}

// eventMeter measures the events of one watch.
type eventMeter struct {
	events prometheus.Counter
	sizes  prometheus.Observer
}

func (m *WatchMeter) of(r core.Resource) eventMeter {
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
