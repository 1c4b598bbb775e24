package admission

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kctl/proto/daemon"
)

// Named is a plugin with the name by which it is measured.
type Named struct {
	Plugin
	Name string
}

// Meter measures how long plugins take, under upstream's names. The nil Meter
// measures nothing.
type Meter struct {
	clock           clock.PassiveClock
	plugins, phases *prometheus.HistogramVec
	observations    observations
}

// NewMeter returns a Meter with its metrics registered.
func NewMeter(registry prometheus.Registerer, clock clock.PassiveClock) *Meter {
	buckets := []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5}
	m := &Meter{
		clock: clock,
		plugins: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_admission_controller_admission_duration_seconds", Buckets: buckets,
			Help: "How long admission plugins took, by name, type (admit or validate), operation, and whether they refused.",
		}, []string{"name", "type", "operation", "rejected"}),
		phases: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_admission_step_admission_duration_seconds", Buckets: buckets,
			Help: "How long all mutating (admit) or validating (validate) plugins together took, by operation, and whether one refused.",
		}, []string{"type", "operation", "rejected"}),
	}
	registry.MustRegister(m)
	return m
}

// Describe and Collect make the Meter a prometheus.Collector of its histograms.
func (m *Meter) Describe(to chan<- *prometheus.Desc) {
	m.plugins.Describe(to)
	m.phases.Describe(to)
}

// Collect counts what has been observed so far before it collects.
func (m *Meter) Collect(to chan<- prometheus.Metric) {
	m.observations.count()
	m.plugins.Collect(to)
	m.phases.Collect(to)
}

// phaseMeter measures the plugins of one kind, and all of them together.
type phaseMeter struct {
	meter   *Meter
	total   histograms
	plugins []histograms // one for each, in the order in which they run
}

func phaseOf[P Plugin](m *Meter, kind string, chain []namedPlugin[P]) *phaseMeter {
	if m == nil {
		return nil
	}
	p := &phaseMeter{meter: m, total: histograms{meter: m, vec: m.phases, labels: []string{kind}}}
	for _, l := range chain {
		p.plugins = append(p.plugins, histograms{meter: m, vec: m.plugins, labels: []string{l.name, kind}})
	}
	return p
}

// histograms are one plugin's, or one phase's. Finding a histogram by its labels
// takes several times as long as an observation, and each write makes dozens of
// them, so the histograms are cached.
type histograms struct {
	meter  *Meter
	vec    *prometheus.HistogramVec
	labels []string
	found  [4][2]atomic.Pointer[prometheus.Observer]
}

func (t *histograms) observe(op Operation, took time.Duration, rejected bool) {
	i, j := operationIndex(op), 0
	if rejected {
		j = 1
	}
	found := t.found[i][j].Load()
	if found == nil {
		labels := append(t.labels[:len(t.labels):len(t.labels)], string(op), strconv.FormatBool(rejected))
		observer := t.vec.WithLabelValues(labels...)
		found = &observer
		t.found[i][j].Store(found)
	}
	t.meter.observations.add(observation{*found, took})
}

func operationIndex(op Operation) int {
	switch op {
	case Create:
		return 0
	case Update:
		return 1
	case Delete:
		return 2
	}
	return 3
}

// measurement measures one request's pass through a phase.
type measurement struct {
	*phaseMeter
	op          Operation
	begun, last time.Time
}

func (p *phaseMeter) start(op Operation) measurement {
	if p == nil {
		return measurement{}
	}
	now := p.meter.clock.Now()
	return measurement{phaseMeter: p, op: op, begun: now, last: now}
}

// observePlugin records the time of the plugin at i.
func (l *measurement) observePlugin(i int, err error) {
	if l.phaseMeter == nil {
		return
	}
	now := l.meter.clock.Now()
	if l.plugins[i].labels[0] != "" {
		l.plugins[i].observe(l.op, now.Sub(l.last), err != nil)
	}
	l.last = now
}

func (l *measurement) observePhase(err error) {
	if l.phaseMeter != nil {
		l.total.observe(l.op, l.last.Sub(l.begun), err != nil)
	}
}
