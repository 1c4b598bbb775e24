// Package imagelocality is the plugin ImageLocality: it prefers nodes that have
// a pod's images already, the more so the larger the images are and the more
// nodes have them, so that an image which few nodes have does not draw all pods
// to those few (Kubernetes docs, "Scheduler Configuration", ImageLocality). The
// profile builds it; which node has what is counted by the cache.
package imagelocality

import (
	"context"
	"slices"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "ImageLocality"

const stateKey framework.StateKey = Name

// Images below the least size together make no difference, and above the most
// (for each image of the pod) no greater one. Both are upstream's.
const (
	leastSize int64 = 23 << 20
	mostSize  int64 = 1000 << 20
)

var skip = framework.NewStatus(framework.Skip)

// Plugin implements PreScore and Score.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// wanted are the pod's images that some nodes have, with what each counts for
// on such a node, and what a node with everything at its largest would have.
type wanted struct {
	images []*framework.Image
	counts []int64
	most   int64
}

// PreScore skips pods whose images are nowhere, or too small to matter even
// where all of them are.
func (*Plugin) PreScore(_ context.Context, state *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	w := wantedBy(pod.Pod, state)
	if w == nil {
		return skip
	}
	state.Write(stateKey, w)
	return nil
}

// wantedBy is what the pod wants, nil where that makes no difference.
func wantedBy(pod *core.Pod, state *framework.CycleState) *wanted {
	w := &wanted{}
	sum, sources := int64(0), int64(0)
	eachImage(pod, func(name string) {
		sources++
		image := state.Image(framework.ImageName(name))
		if image == nil {
			return
		}
		counts := int64(float64(image.Size) * float64(image.Nodes()) / float64(len(state.Nodes)))
		w.images, w.counts = append(w.images, image), append(w.counts, counts)
		sum += counts
	})
	if sum <= leastSize {
		return nil
	}
	w.most = mostSize * sources
	return w
}

func eachImage(pod *core.Pod, visit func(name string)) {
	for c := range core.Containers(&pod.Spec) {
		visit(c.Image)
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			visit(image.Reference)
		}
	}
}

// Score is the size of what the node has, between the least and the most.
func (*Plugin) Score(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) (int64, *framework.Status) {
	w, ok := state.Read(stateKey).(*wanted)
	if !ok {
		// Upstream's plugin has no PreScore: a profile that disables that point of all
		// plugins means this one to count all the same.
		if w = wantedBy(pod.Pod, state); w == nil {
			return 0, nil
		}
	}
	var sum int64
	for i, image := range w.images {
		if slices.Contains(node.Images, image) {
			sum += w.counts[i]
		}
	}
	sum = min(max(sum, leastSize), w.most)
	return framework.MaxNodeScore * (sum - leastSize) / (w.most - leastSize), nil
}
