package metrics

import "github.com/prometheus/client_golang/prometheus"

// Gauges reads what the queue and the cache hold when it is asked, so that they
// need not count for it.
type Gauges struct {
	// Pending counts waiting pods by the part of the queue they are in.
	Pending func() map[string]int
	// Unschedulable counts pods by profile and plugin that refused them.
	Unschedulable func(each func(profile, plugin string, pods int))
	// Inflight counts the events kept for pods that are being attempted.
	Inflight func() map[string]int
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
	queuedDesc = prometheus.NewDesc(subsystem+"_queued_entities",
		"Number of queued pods by the queue type; what is queued is always a pod.", []string{"queue", "type"}, nil)
	unschedulableDesc = prometheus.NewDesc(subsystem+"_unschedulable_pods",
		"The number of unschedulable pods broken down by plugin name.", []string{"plugin", "profile"}, nil)
	inflightDesc = prometheus.NewDesc(subsystem+"_inflight_events",
		"Number of events currently tracked in the scheduling queue.", []string{"event"}, nil)
	cacheDesc = prometheus.NewDesc(subsystem+"_cache_size",
		"Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", []string{"type"}, nil)
	leadingDesc = prometheus.NewDesc("leader_election_master_status",
		"Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.", []string{"name"}, nil)
)

// Describe implements prometheus.Collector.
func (g Gauges) Describe(descs chan<- *prometheus.Desc) {
	descs <- pendingDesc
	descs <- queuedDesc
	descs <- unschedulableDesc
	descs <- inflightDesc
	descs <- cacheDesc
	descs <- leadingDesc
}

// Collect implements prometheus.Collector.
func (g Gauges) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	for part, count := range g.Pending() {
		gauge(pendingDesc, count, part)
		gauge(queuedDesc, count, part, "pod")
	}
	g.Unschedulable(func(profile, plugin string, pods int) { gauge(unschedulableDesc, pods, plugin, profile) })
	for event, count := range g.Inflight() {
		gauge(inflightDesc, count, event)
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
