// Package curve says what a used share is worth, by points between which it goes
// straight (Kubernetes API, "kube-scheduler Configuration (v1)",
// UtilizationShapePoint).
//
// Plugins that score by a shape call it; it knows nothing of what is used.
package curve

import (
	"slices"

	"kctl/scheduler/framework"
)

// Point says that what is used to Utilization percent scores Score.
type Point struct {
	Utilization, Score int64 // each 0 to 100
}

// Curve is at least one point, by growing utilization. The first and the last
// hold beyond them.
type Curve []Point

// At is what a utilization is worth.
func (c Curve) At(utilization int64) int64 {
	after := slices.IndexFunc(c, func(p Point) bool { return utilization <= p.Utilization })
	switch after {
	case -1:
		return c[len(c)-1].Score
	case 0:
		return c[0].Score
	}
	from, to := c[after-1], c[after]
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
