// Package nodedeclaredfeatures is the plugin NodeDeclaredFeatures: a pod that needs a
// new feature of a kubelet goes to the nodes that say that they have it (Kubernetes
// docs, "Node Declared Features", KEP-5328). Upstream's library decides which
// features a pod needs, as it does in kubelets and API servers.
package nodedeclaredfeatures

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"kctl/proto/release"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "NodeDeclaredFeatures"

const stateKey = Name

var refused = framework.NewStatus(framework.UnschedulableAndUnresolvable, "node(s) didn't match Pod's required features").By(Name)

// level is the version of Kubernetes by which pods are looked at.
var level = version.MustParseSemantic(release.Version().GitVersion)

// Plugin implements PreFilter and Filter.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// PreFilter implements framework.PreFilter: nearly all pods need nothing.
func (*Plugin) PreFilter(_ context.Context, state *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	needed, err := nodedeclaredfeatures.DefaultFramework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &pod.Pod.Spec}, level)
	if err != nil {
		return nil, framework.AsError(fmt.Errorf("find out what the pod needs of its node: %w", err)).By(Name)
	}
	if needed.IsEmpty() {
		return nil, framework.NewStatus(framework.Skip)
	}
	state.Write(stateKey, needed)
	return nil, nil
}

// Filter implements framework.Filter.
func (*Plugin) Filter(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	needed, ok := state.Read(stateKey).(nodedeclaredfeatures.FeatureSet)
	if !ok {
		return framework.Unprepared(Name)
	}
	match, err := nodedeclaredfeatures.DefaultFramework.MatchNode(needed, node.Node)
	if err != nil {
		return framework.AsError(fmt.Errorf("read the features of node %s: %w", node.Name(), err)).By(Name)
	}
	if match.IsMatch {
		return nil
	}
	return refused
}

// EventsToRegister implements framework.EnqueueExtensions.
func (p *Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{{
		Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeDeclaredFeatures,
		QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
			needed, err := nodedeclaredfeatures.DefaultFramework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &pod.Pod.Spec}, level)
			if err != nil {
				return true
			}
			match, err := nodedeclaredfeatures.DefaultFramework.MatchNode(needed, event.NewNode)
			return err != nil || match.IsMatch
		},
	}}
}
