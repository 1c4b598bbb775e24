package noderesources

import (
	"context"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/scheduler/framework"
)

// BalancedName is the plugin's name in configurations and metrics.
const BalancedName = "NodeResourcesBalancedAllocation"

// Balanced implements PreScore, Score and Sign: it prefers nodes whose resources
// would be used up evenly, so that none runs out while others lie idle.
type Balanced struct {
	weights []Weight
	usual   bool // CPU and memory are what counts
}

// NewBalanced returns the plugin; without weights, CPU and memory count.
func NewBalanced(weights []Weight) *Balanced {
	if len(weights) == 0 {
		weights = defaultWeights
	}
	usual := len(weights) == 2 && weights[0].Resource == corev1.ResourceCPU && weights[1].Resource == corev1.ResourceMemory
	return &Balanced{weights: weights, usual: usual}
}

// Name implements framework.Plugin.
func (*Balanced) Name() string { return BalancedName }

var skip = framework.NewStatus(framework.Skip)

// PreScore skips pods that ask for none of the resources: they change no
// node's balance.
func (b *Balanced) PreScore(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	if slices.ContainsFunc(b.weights, func(w Weight) bool { return pod.Requests.Get(w.Resource) > 0 }) {
		return nil
	}
	return skip
}

// SignPod implements framework.Sign.
func (*Balanced) SignPod(pod *framework.PodInfo, to *framework.Signature) { to.Resource(&pod.Requests) }

// Score grows with how evenly the node's resources would be used.
func (b *Balanced) Score(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) (int64, *framework.Status) {
	have, used, want := &node.Allocatable, &node.Requested, &pod.Requests
	if b.usual && have.MilliCPU != 0 && have.Memory != 0 {
		// As in Fit.
		without := [2]float64{share(used.MilliCPU, have.MilliCPU), share(used.Memory, have.Memory)}
		with := [2]float64{
			share(framework.AddCapped(used.MilliCPU, want.MilliCPU), have.MilliCPU),
			share(framework.AddCapped(used.Memory, want.Memory), have.Memory),
		}
		return balance(without[:], with[:]), nil
	}
	var before, after [8]float64
	without, with := before[:0], after[:0]
	for _, w := range b.weights {
		requested, allocatable, counts := usage(want, used, node, w.Resource)
		if !counts {
			continue
		}
		without = append(without, share(used.Get(w.Resource), allocatable))
		with = append(with, share(requested, allocatable))
	}
	return balance(without, with), nil
}

// share is how much of a resource is used.
func share(amount, allocatable int64) float64 { return min(float64(amount)/float64(allocatable), 1) }

// balance is half of the gain, or loss, in evenness against an unchanged node.
func balance(without, with []float64) int64 {
	return (unchanged*2 + evenness(with) - evenness(without)) / 2
}

// unchanged is the score of a node whose evenness the pod does not change.
const unchanged = framework.MaxNodeScore * 3 / 4

// evenness is the whole score less the standard deviation of shares.
func evenness(shares []float64) int64 {
	return int64((1 - deviation(shares)) * float64(framework.MaxNodeScore))
}

// deviation is the standard deviation of shares; zero if there are none. For
// two, the usual case, it is half their difference.
func deviation(shares []float64) float64 {
	switch len(shares) {
	case 0:
		return 0
	case 2:
		return math.Abs(shares[0]-shares[1]) / 2
	}
	var total, squares float64
	for _, share := range shares {
		total += share
	}
	mean := total / float64(len(shares))
	for _, share := range shares {
		squares += (share - mean) * (share - mean)
	}
	return math.Sqrt(squares / float64(len(shares)))
}
