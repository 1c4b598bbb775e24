package measured

import "github.com/prometheus/client_golang/prometheus"

var heldBackDesc = prometheus.NewDesc("apiserver_storage_held_back",
	"Resources that cannot be listed or watched, because a stored value of theirs cannot be read, by where they are in etcd.", []string{"resource"}, nil)

// HeldBack shows the resources that are held back; those of which nothing is shown are
// not.
type HeldBack func() []string

// Describe implements prometheus.Collector.
func (h HeldBack) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- heldBackDesc }

// Collect implements prometheus.Collector.
func (h HeldBack) Collect(metrics chan<- prometheus.Metric) {
	for _, resource := range h() {
		metrics <- prometheus.MustNewConstMetric(heldBackDesc, prometheus.GaugeValue, 1, resource)
	}
}
