package configfile

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/identity"
)

// lookEvery is how often a file is looked at, unless its follower says otherwise.
const lookEvery = 10 * time.Second

// Follower applies changes of a file, or of a directory's files. An invalid change is
// logged once, and the earlier content stays in force.
type Follower struct {
	Path    string
	Read    func() ([]byte, error) // of a directory; nil for a file
	Content []byte                 // the content in force
	Every   time.Duration          // how often it is looked at; lookEvery if 0
	Apply   func(content []byte) error
	Clock   clock.WithTicker
	Logger  *zap.Logger
	Metrics *Metrics
}

// Metrics count changes.
type Metrics struct {
	reloads *prometheus.CounterVec
	last    *prometheus.GaugeVec
	info    *prometheus.GaugeVec
}

// NewMetrics returns upstream's metrics for the file about a subject
// ("authorization", say), with the content in force.
func NewMetrics(about string, content []byte, registry prometheus.Registerer) *Metrics {
	prefix := "apiserver_" + about + "_config_controller_automatic_reload"
	m := &Metrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "s_total", Help: "Total number of automatic reloads of the " + about + " configuration split by status.",
		}, []string{"status"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "_last_timestamp_seconds", Help: "Timestamp of the last automatic reload of the " + about +
				" configuration split by status.",
		}, []string{"status"}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_" + about + "_config_controller_last_config_info",
			Help: "Information about the last applied " + about + " configuration with hash as label.",
		}, []string{"hash"}),
	}
	identity.Registerer(registry).MustRegister(m.reloads, m.last, m.info)
	m.setInfo(content)
	return m
}

// Loaded counts the content in force among the successful reloads, as upstream does with some
// configurations.
func (m *Metrics) Loaded(now time.Time) { m.count("success", now) }

func (m *Metrics) count(status string, now time.Time) {
	m.reloads.WithLabelValues(status).Inc()
	m.last.WithLabelValues(status).Set(float64(now.Unix()))
}

// setInfo says which content is in force, so that servers can be compared.
func (m *Metrics) setInfo(content []byte) {
	m.info.Reset()
	m.info.WithLabelValues(identity.Hash(string(content))).Set(1)
}

// Run follows the file until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	ticker := f.Clock.NewTicker(cmp.Or(f.Every, lookEvery))
	defer ticker.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
			failed = f.look(failed)
		}
	}
}

func (f *Follower) read() ([]byte, error) {
	if f.Read != nil {
		return f.Read()
	}
	return Read(f.Path)
}

// look applies a change. failed is the last error; it returns the present one.
func (f *Follower) look(failed string) string {
	content, err := f.read()
	same := err == nil && bytes.Equal(content, f.Content)
	if same && failed == "" {
		return ""
	}
	status := "success" // also if a change is taken back: the file is what is in force
	if err == nil && !same {
		err = f.Apply(content)
	}
	if err != nil {
		status = "failure"
	}
	f.Metrics.count(status, f.Clock.Now())
	if err != nil {
		if err.Error() != failed {
			f.Logger.Error("changed configuration file rejected; the previous configuration stays in effect",
				zap.String("file", f.Path), zap.Error(err))
		}
		return err.Error()
	}
	f.Content = content
	f.Metrics.setInfo(content)
	f.Logger.Info("a changed configuration file is in force", zap.String("file", f.Path))
	return ""
}
