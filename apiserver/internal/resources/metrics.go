package resources

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

var (
	objects = prometheus.NewDesc("apiserver_resource_objects", "Number of stored objects.", []string{"group", "resource"}, nil)
	// The name that dashboards from before 1.34 use.
	storageObjects = prometheus.NewDesc("apiserver_storage_objects", "Number of stored objects.", []string{"resource"}, nil)
)

// Counts are the metrics of how many objects are stored.
type Counts struct {
	Builtin *Set
	// Custom yields custom resources with the number of their objects.
	Custom iter.Seq2[core.Resource, int]
}

// Describe implements prometheus.Collector.
func (Counts) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- objects
	descriptions <- storageObjects
}

// counted is a store whose objects can be counted.
type counted interface {
	runner
	Info() registry.Info
	Count() int
}

// Collect implements prometheus.Collector: -1, as in upstream, is an unknown number.
func (c Counts) Collect(out chan<- prometheus.Metric) {
	collect := func(r core.Resource, n int) {
		out <- prometheus.MustNewConstMetric(objects, prometheus.GaugeValue, float64(n), r.Group, r.Name)
		out <- prometheus.MustNewConstMetric(storageObjects, prometheus.GaugeValue, float64(n), r.GVR().GroupResource().String())
	}
	for _, store := range c.Builtin.runners() {
		store, ok := store.(counted)
		if !ok {
			continue
		}
		n := -1
		if store.Ready() == nil {
			n = store.Count()
		}
		collect(store.Info().Resource, n)
	}
	for r, n := range c.Custom {
		collect(r, n)
	}
}
