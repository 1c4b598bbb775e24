package noderesources

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/shape"
)

// FitName is the plugin's name in configurations and metrics.
const FitName = "NodeResourcesFit"

// Weight says how much a resource counts in a score.
type Weight struct {
	Resource corev1.ResourceName
	Weight   int64
}

// defaultWeights are upstream's: CPU and memory count the same.
var defaultWeights = []Weight{{corev1.ResourceCPU, 1}, {corev1.ResourceMemory, 1}}

// FitOptions are the plugin's arguments.
type FitOptions struct {
	// MostAllocated packs nodes; otherwise the emptiest node is best, unless Shape
	// gives the score of a utilization.
	MostAllocated bool
	Shape         shape.Function
	Weights       []Weight
	// IgnoredResources and IgnoredGroups (the part of the name before the
	// slash) are not counted by the filter: an extender does.
	IgnoredResources []string
	IgnoredGroups    []string
}

// Fit implements Filter, Score and Sign.
type Fit struct {
	options FitOptions
	usual   bool // CPU and memory count, the same, and without a shape
}

// NewFit returns the plugin.
func NewFit(options FitOptions) *Fit {
	if len(options.Weights) == 0 {
		options.Weights = defaultWeights
	}
	return &Fit{options: options, usual: len(options.Shape) == 0 && slices.Equal(options.Weights, defaultWeights)}
}

// Name implements framework.Plugin.
func (*Fit) Name() string { return FitName }

// The resources that nearly all refusals are about, as bits, so that the status
// of each combination is made once and not for each node.
const (
	lackPods = 1 << iota
	lackCPU
	lackMemory
	lackStorage
	lackCombinations
)

var lackReasons = [...]string{"Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"}

// refusals by resolvability and missing resources.
var refusals = func() (all [2][lackCombinations]*framework.Status) {
	for i, code := range [...]framework.Code{framework.Unschedulable, framework.UnschedulableAndUnresolvable} {
		for lacks := 1; lacks < lackCombinations; lacks++ {
			all[i][lacks] = framework.NewStatus(code, reasonsOf(lacks)...).By(FitName)
		}
	}
	return all
}()

func reasonsOf(lacks int) []string {
	var reasons []string
	for bit, reason := range lackReasons {
		if lacks&(1<<bit) != 0 {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// Filter implements framework.Filter.
func (f *Fit) Filter(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	want, have, used := &pod.Requests, &node.Allocatable, &node.Requested
	lacks, never := 0, 0
	if int64(len(node.Pods))+1 > have.AllowedPods {
		lacks |= lackPods
	}
	check := func(bit int, want, have, used int64) {
		if want > 0 && want > have-used {
			lacks |= bit
			if want > have {
				never = 1 // even an empty node is too small
			}
		}
	}
	check(lackCPU, want.MilliCPU, have.MilliCPU, used.MilliCPU)
	check(lackMemory, want.Memory, have.Memory, used.Memory)
	check(lackStorage, want.EphemeralStorage, have.EphemeralStorage, used.EphemeralStorage)
	if len(want.Scalar) > 0 {
		if scalars, tooMany := f.lackingScalars(want, have, used); len(scalars) > 0 {
			code := framework.Unschedulable
			if tooMany || never == 1 {
				code = framework.UnschedulableAndUnresolvable
			}
			return framework.NewStatus(code, append(reasonsOf(lacks), scalars...)...).By(FitName)
		}
	}
	if lacks == 0 {
		return nil
	}
	return refusals[never][lacks]
}

// lackingScalars also tells whether even an empty node has too little.
func (f *Fit) lackingScalars(want, have, used *framework.Resource) (reasons []string, never bool) {
	for name, quantity := range want.Scalar {
		if quantity > 0 && quantity > have.Scalar[name]-used.Scalar[name] && !f.ignored(name) {
			reasons = append(reasons, fmt.Sprintf("Insufficient %s", name))
			never = never || quantity > have.Scalar[name]
		}
	}
	slices.Sort(reasons)
	return reasons, never
}

func (f *Fit) ignored(name corev1.ResourceName) bool {
	group, _, prefixed := strings.Cut(string(name), "/")
	return slices.Contains(f.options.IgnoredResources, string(name)) ||
		prefixed && slices.Contains(f.options.IgnoredGroups, group)
}

// SignPod implements framework.Sign.
func (*Fit) SignPod(pod *framework.PodInfo, to *framework.Signature) {
	to.Resource(&pod.Requests)
	to.Resource(pod.ScoredAlone())
}

// Score implements framework.Score by the strategy. RequestedToCapacityRatio
// leaves out the resources that score nothing, and rounds.
func (f *Fit) Score(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) (int64, *framework.Status) {
	have, used, want := &node.Allocatable, &node.Scored, pod.ScoredAlone()
	if f.usual && have.MilliCPU != 0 && have.Memory != 0 {
		// The case of nearly all nodes, hundreds in each attempt: looking resources up by
		// name would take several times as long.
		return (f.rate(framework.AddCapped(used.MilliCPU, want.MilliCPU), have.MilliCPU) +
			f.rate(framework.AddCapped(used.Memory, want.Memory), have.Memory)) / 2, nil
	}
	shaped := len(f.options.Shape) > 0
	var sum, weights int64
	for _, w := range f.options.Weights {
		requested, allocatable, counts := usage(want, used, node, w.Resource)
		if !counts {
			continue
		}
		rate := f.rate(requested, allocatable)
		if shaped && rate == 0 {
			continue
		}
		sum += w.Weight * rate
		weights += w.Weight
	}
	switch {
	case weights == 0:
		return 0, nil
	case shaped:
		return int64(math.Round(float64(sum) / float64(weights))), nil
	}
	return sum / weights, nil
}

func (f *Fit) rate(requested, allocatable int64) int64 {
	switch {
	case len(f.options.Shape) > 0:
		return f.options.Shape.At(shape.Percent(min(requested, allocatable), allocatable))
	case f.options.MostAllocated:
		return shape.Percent(min(requested, allocatable), allocatable)
	case requested > allocatable:
		return 0
	}
	return shape.Percent(allocatable-requested, allocatable)
}

// usage returns what would be requested of a node's resource if want were added
// to what is used. The resource does not count if the node has none of it, or
// if it is an extended resource or huge pages and the pod requests none; nor do
// pods, which take one each wherever they are (as in kube-scheduler).
func usage(want, used *framework.Resource, node *framework.NodeInfo, name corev1.ResourceName) (requested, allocatable int64, counts bool) {
	allocatable = node.Allocatable.Get(name)
	if allocatable == 0 || name == corev1.ResourcePods || want.Get(name) == 0 && framework.IsScalar(name) {
		return 0, 0, false
	}
	return framework.AddCapped(used.Get(name), want.Get(name)), allocatable, true
}

// EventsToRegister implements framework.EnqueueExtensions.
func (f *Fit) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{
		{
			Resource: framework.AssignedPodEvent, ActionType: framework.Delete | framework.UpdatePodScaleDown,
			QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
				// A pod that goes frees a pod slot, whatever else it frees.
				return event.ActionType == framework.Delete || frees(pod, event.OldPod, event.NewPod)
			},
		},
		{
			Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeAllocatable,
			QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
				empty := framework.NodeInfo{}
				if event.OldNode != nil && !grew(pod, event.OldNode, event.NewNode) {
					return false
				}
				empty.SetNode(event.NewNode)
				return f.Filter(context.Background(), nil, pod, &empty).IsSuccess()
			},
		},
		{Resource: framework.PodEvent, ActionType: framework.UpdatePodScaleDown},
	}
}

// grew reports whether a node now has more of what pod asks for.
func grew(pod *framework.PodInfo, old, updated *core.Node) bool {
	before, after := framework.NewResource(old.Status.Allocatable), framework.NewResource(updated.Status.Allocatable)
	return after.AllowedPods > before.AllowedPods || less(&pod.Requests, &before, &after)
}

// frees reports whether the change freed anything that pod asks for.
func frees(pod *framework.PodInfo, old, updated *core.Pod) bool {
	before, after := framework.NewPodInfo(old).Requests, framework.NewPodInfo(updated).Requests
	return less(&pod.Requests, &after, &before)
}

// less reports whether a is less than b in anything that is wanted.
func less(want, a, b *framework.Resource) bool {
	if want.MilliCPU > 0 && a.MilliCPU < b.MilliCPU || want.Memory > 0 && a.Memory < b.Memory ||
		want.EphemeralStorage > 0 && a.EphemeralStorage < b.EphemeralStorage {
		return true
	}
	for name, quantity := range want.Scalar {
		if quantity > 0 && a.Scalar[name] < b.Scalar[name] {
			return true
		}
	}
	return false
}
