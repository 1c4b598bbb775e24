package metrics

import "github.com/prometheus/client_golang/prometheus"

// Gauges reads what the queue and the cache hold when it is asked, so that they
// need not count for it.
type Gauges struct {
	// Pending counts waiting pods by the part of the queue they are in.
	Pending func() map[string]int
	// CacheSizes counts nodes, pods and assumed pods.
	CacheSizes func() (nodes, pods, assumed int)
	// Leading reports whether this scheduler leads, and Lease names what it
	// leads by.
	Leading func() bool
	Lease   string
}

var (
	pendingDesc = prometheus.NewDesc(subsystem+"_pending_pods",
		"Number of pending pods, by the queue type.", []string{"queue"}, nil)
	cacheDesc = prometheus.NewDesc(subsystem+"_scheduler_cache_size",
		"Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", []string{"type"}, nil)
	leadingDesc = prometheus.NewDesc("leader_election_master_status",
		"Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.", []string{"name"}, nil)
)

// Describe implements prometheus.Collector.
func (g Gauges) Describe(descs chan<- *prometheus.Desc) {
	descs <- pendingDesc
	descs <- cacheDesc
	descs <- leadingDesc
}

// Collect implements prometheus.Collector.
func (g Gauges) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value int, label string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), label)
	}
	for part, count := range g.Pending() {
		gauge(pendingDesc, count, part)
	}
	nodes, pods, assumed := g.CacheSizes()
	gauge(cacheDesc, nodes, "nodes")
	gauge(cacheDesc, pods, "pods")
	gauge(cacheDesc, assumed, "assumed_pods")
	leading := 0
	if g.Leading() {
		leading = 1
	}
	gauge(leadingDesc, leading, g.Lease)
}
