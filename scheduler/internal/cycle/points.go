package cycle

import (
	"time"

	"k8s.io/utils/clock"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/metrics"
)

// points measures the extension points of attempts.
type points struct {
	metrics *metrics.Metrics
	clock   clock.PassiveClock
	// evaluations is used only by the cycle's goroutine.
	evaluations map[string]*metrics.Evaluations
}

func newPoints(metered *metrics.Metrics, clock clock.PassiveClock) *points {
	return &points{metrics: metered, clock: clock, evaluations: map[string]*metrics.Evaluations{}}
}

// asked counts the plugins of a point that were asked in an attempt.
func asked[P framework.Plugin](p *points, profile *framework.Profile, point string, plugins []P) {
	of := p.evaluations[profile.SchedulerName]
	if of == nil {
		of = p.metrics.EvaluationsOf(profile.SchedulerName)
		p.evaluations[profile.SchedulerName] = of
	}
	for _, plugin := range plugins {
		of.Count(point, plugin.Name())
	}
}

func (p *points) observe(profile *framework.Profile, point string, status *framework.Status, began time.Time) {
	p.metrics.Point(point, profile.SchedulerName, status.Code().String(), p.clock.Since(began))
}
