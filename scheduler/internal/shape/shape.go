// Package shape gives the score of a utilization, interpolated linearly between
// given points (Kubernetes API, "kube-scheduler Configuration (v1)",
// UtilizationShapePoint).
//
// Plugins that score by a shape call it; it does not know what is being used.
package shape

import (
	"slices"

	"kctl/scheduler/framework"
)

// Point gives a Score to a Utilization, in percent.
type Point struct {
	Utilization, Score int64 // each 0 to 100
}

// Function is one point or more, in order of utilization. Before the first and
// after the last it is constant.
type Function []Point

// At is the score of a utilization.
func (f Function) At(utilization int64) int64 {
	after := slices.IndexFunc(f, func(p Point) bool { return utilization <= p.Utilization })
	switch after {
	case -1:
		return f[len(f)-1].Score
	case 0:
		return f[0].Score
	}
	from, to := f[after-1], f[after]
	return from.Score + (to.Score-from.Score)*(utilization-from.Utilization)/(to.Utilization-from.Utilization)
}

// Percent is part/whole on the scale of scores; in floating point, where
// part·100 does not fit because whole is bytes.
func Percent(part, whole int64) int64 {
	if part <= (1<<63-1)/framework.MaxNodeScore {
		return part * framework.MaxNodeScore / whole
	}
	return int64(float64(part) / float64(whole) * float64(framework.MaxNodeScore))
}
