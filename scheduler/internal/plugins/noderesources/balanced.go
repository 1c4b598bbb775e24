package noderesources

import (
	"context"
	"math"

	"kctl/scheduler/framework"
)

// BalancedName is the plugin's name in configurations and metrics.
const BalancedName = "NodeResourcesBalancedAllocation"

// Balanced implements PreScore and Score: it prefers nodes whose resources
// would be used up evenly, so that none runs out while others lie idle.
type Balanced struct{ weights []Weight }

// NewBalanced returns the plugin; without weights, CPU and memory count.
func NewBalanced(weights []Weight) *Balanced {
	if len(weights) == 0 {
		weights = DefaultWeights
	}
	return &Balanced{weights: weights}
}

// Name implements framework.Plugin.
func (*Balanced) Name() string { return BalancedName }

var skip = framework.NewStatus(framework.Skip)

// PreScore skips pods that ask for none of the resources: they change no
// node's balance.
func (b *Balanced) PreScore(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	for _, w := range b.weights {
		if pod.Requests.Get(w.Resource) > 0 {
			return nil
		}
	}
	return skip
}

// Score is the higher the smaller the standard deviation of the resources'
// used shares is.
func (b *Balanced) Score(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	var shares [8]float64
	used := shares[:0]
	var total float64
	for _, w := range b.weights {
		requested, allocatable, counts := usage(pod, node, w.Resource, false)
		if !counts {
			continue
		}
		share := math.Min(float64(requested)/float64(allocatable), 1)
		used = append(used, share)
		total += share
	}
	if len(used) == 0 {
		return framework.MaxNodeScore, nil
	}
	mean := total / float64(len(used))
	var squares float64
	for _, share := range used {
		squares += (share - mean) * (share - mean)
	}
	deviation := math.Sqrt(squares / float64(len(used)))
	return int64((1 - deviation) * float64(framework.MaxNodeScore)), nil
}
