// Package volumezone is the plugin VolumeZone: a volume whose labels say in which
// zones and regions it is can be used only there. The profile builds it.
package volumezone

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/volumes"
)

// Name of the plugin in configurations and metrics.
const Name = "VolumeZone"

const stateKey framework.StateKey = Name

var (
	skip    = framework.NewStatus(framework.Skip)
	refused = framework.NewStatus(framework.UnschedulableAndUnresolvable, "node(s) had no available volume zone").By(Name)
)

// places are the labels of zones and regions, with their current names.
var places = map[string]string{
	corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelTopologyRegion: corev1.LabelTopologyRegion,
}

// Plugin implements PreFilter and Filter.
type Plugin struct{ volumes *volumes.Volumes }

// New returns the plugin.
func New(known *volumes.Volumes) *Plugin { return &Plugin{known} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// where is a place that a volume is at: one of the values of a label.
type where struct {
	label  string
	values []string
}

// PreFilter collects the places of the pod's volumes.
func (p *Plugin) PreFilter(ctx context.Context, state *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	all, status := p.placesOf(ctx, pod.Pod)
	if status != nil {
		return nil, status
	}
	if len(all) == 0 {
		return nil, skip
	}
	state.Write(stateKey, all)
	return nil, nil
}

// placesOf are the places of the pod's volumes. VolumeBinding reports what is wrong
// with a claim, and this plugin, as upstream's, if its volume is gone.
func (p *Plugin) placesOf(ctx context.Context, pod *core.Pod) ([]where, *framework.Status) {
	if !volumes.HasClaims(pod) {
		return nil, nil
	}
	claims, status := p.volumes.Of(ctx, pod, Name)
	if status != nil {
		return nil, status
	}
	var all []where
	for _, claim := range claims {
		name := claim.Spec.VolumeName
		if name == "" {
			continue
		}
		volume, known := p.volumes.Volume(name)
		if !known {
			return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, fmt.Sprintf("persistentvolume %q not found", name)).By(Name)
		}
		for label := range places {
			values := strings.Split(volume.Labels[label], "__")
			if !slices.Contains(values, "") { // upstream ignores such a label as a whole
				all = append(all, where{label, values})
			}
		}
	}
	return all, nil
}

// Filter implements framework.Filter. A node without any of the labels can have
// every volume.
func (p *Plugin) Filter(ctx context.Context, state *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) *framework.Status {
	all, prepared := state.Read(stateKey).([]where)
	if !prepared { // a profile may disable PreFilter, and have Filter
		var status *framework.Status
		if all, status = p.placesOf(ctx, pod.Pod); status != nil {
			return status
		}
	}
	if !placed(node.Node) {
		return nil
	}
	for _, at := range all {
		if !at.has(node.Node) {
			return refused
		}
	}
	return nil
}

func placed(node *core.Node) bool {
	for label := range places {
		if _, has := node.Labels[label]; has {
			return true
		}
	}
	return false
}

// has reports whether the node is in one of the volume's zones or regions, by
// the volume's label or its current name.
func (w *where) has(node *core.Node) bool {
	at, has := node.Labels[w.label]
	if !has {
		at, has = node.Labels[places[w.label]]
	}
	return has && slices.Contains(w.values, at)
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	const either = framework.Add | framework.Update
	return []framework.ClusterEventWithHint{
		{Resource: framework.ClaimEvent, ActionType: either, QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
			return volumes.Names(pod.Pod, event.Claim)
		}},
		{Resource: framework.VolumeEvent, ActionType: either},
		{Resource: framework.ClassEvent, ActionType: framework.Add},
		{Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeLabel},
	}
}
