package resources

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/apiserver/internal/registry"
)

var (
	objects = prometheus.NewDesc("apiserver_resource_objects", "Number of stored objects.", []string{"group", "resource"}, nil)
	// The name that dashboards from before 1.34 use.
	storageObjects = prometheus.NewDesc("apiserver_storage_objects", "Number of stored objects.", []string{"resource"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Set) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- objects
	descriptions <- storageObjects
}

// counted is a store whose objects can be counted.
type counted interface {
	runner
	Info() registry.Info
	Count() int
}

// Collect implements prometheus.Collector: the number of objects of each built-in
// resource; -1, as in upstream, if it is unknown.
func (s *Set) Collect(out chan<- prometheus.Metric) {
	for _, store := range s.runners() {
		store, ok := store.(counted)
		if !ok {
			continue
		}
		n := -1
		if store.Ready() == nil {
			n = store.Count()
		}
		r := store.Info().Resource
		out <- prometheus.MustNewConstMetric(objects, prometheus.GaugeValue, float64(n), r.Group, r.Name)
		out <- prometheus.MustNewConstMetric(storageObjects, prometheus.GaugeValue, float64(n), r.GVR().GroupResource().String())
	}
}
