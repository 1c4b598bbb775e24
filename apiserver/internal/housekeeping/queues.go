package housekeeping

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kctl/proto/daemon"
)

// Queues measures the queues of the loops, under the names of kube-controller-manager's
// (workqueue_*). On a server that does not lead they are empty. It is safe for concurrent use,
// and nil measures nothing.
type Queues struct {
	clock                               clock.PassiveClock
	adds, retries, depth, open, longest *prometheus.Desc
	waited, worked                      *prometheus.HistogramVec

	mu    sync.Mutex
	names map[string]*queueMeter
}

// queueMeter measures the queues of one name.
type queueMeter struct {
	queues         *Queues
	waited, worked prometheus.Observer

	// The following fields are guarded by the Queues' mu.
	adds, retries float64
	running       map[*worker]bool
}

// NewQueues registers the metrics.
func NewQueues(registry prometheus.Registerer, clock clock.PassiveClock) *Queues {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("workqueue_"+name, help, []string{"name"}, nil)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "workqueue_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(1e-8, 10, 10),
		}, []string{"name"})
	}
	q := &Queues{
		clock: clock, names: map[string]*queueMeter{},
		adds:    desc("adds_total", "Total number of adds handled by workqueue"),
		retries: desc("retries_total", "Total number of retries handled by workqueue"),
		depth:   desc("depth", "Current depth of workqueue"),
		open:    desc("unfinished_work_seconds", "How many seconds the objects that are being worked on have taken so far, together."),
		longest: desc("longest_running_processor_seconds",
			"How many seconds the object has taken so far that has been worked on for the longest time."),
		waited: histogram("queue_duration_seconds", "How long in seconds an item stays in workqueue before being requested."),
		worked: histogram("work_duration_seconds", "How long in seconds processing an item from workqueue takes."),
	}
	registry.MustRegister(q, q.waited, q.worked)
	return q
}

// meter is that of the queues with a name; nil for none.
func (q *Queues) meter(name string) *queueMeter {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.names[name]
	if m == nil {
		m = &queueMeter{
			queues: q, waited: q.waited.WithLabelValues(name), worked: q.worked.WithLabelValues(name), running: map[*worker]bool{},
		}
		q.names[name] = m
	}
	return m
}

// Describe implements prometheus.Collector.
func (q *Queues) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{q.adds, q.retries, q.depth, q.open, q.longest} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (q *Queues) Collect(to chan<- prometheus.Metric) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	for name, m := range q.names {
		depth, open, longest := 0, time.Duration(0), time.Duration(0)
		for w := range m.running {
			due, together, most := w.load(now)
			depth, open, longest = depth+due, open+together, max(longest, most)
		}
		to <- prometheus.MustNewConstMetric(q.adds, prometheus.CounterValue, m.adds, name)
		to <- prometheus.MustNewConstMetric(q.retries, prometheus.CounterValue, m.retries, name)
		to <- prometheus.MustNewConstMetric(q.depth, prometheus.GaugeValue, float64(depth), name)
		to <- prometheus.MustNewConstMetric(q.open, prometheus.GaugeValue, open.Seconds(), name)
		to <- prometheus.MustNewConstMetric(q.longest, prometheus.GaugeValue, longest.Seconds(), name)
	}
}

func (m *queueMeter) added() {
	if m != nil {
		m.queues.mu.Lock()
		defer m.queues.mu.Unlock()
		m.adds++
	}
}

func (m *queueMeter) retried() {
	if m != nil {
		m.queues.mu.Lock()
		defer m.queues.mu.Unlock()
		m.retries++
	}
}

func (m *queueMeter) began(w *worker) {
	if m != nil {
		m.queues.mu.Lock()
		defer m.queues.mu.Unlock()
		m.running[w] = true
	}
}

func (m *queueMeter) ended(w *worker) {
	if m != nil {
		m.queues.mu.Lock()
		defer m.queues.mu.Unlock()
		delete(m.running, w)
	}
}
