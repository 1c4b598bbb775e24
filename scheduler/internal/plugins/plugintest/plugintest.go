// Package plugintest runs one plugin on one pod as a profile would. Only tests
// import it.
package plugintest

import (
	"context"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Filter runs the plugin's PreFilter, where it has one, and its Filter on node,
// in a cluster with the other nodes.
func Filter(ctx context.Context, plugin framework.Plugin, pod *core.Pod, node *framework.NodeInfo,
	others ...*framework.NodeInfo) *framework.Status {
	state, info := framework.NewCycleState(nil), framework.NewPodInfo(pod)
	setNodes(state, append([]*framework.NodeInfo{node}, others...))
	if p, ok := plugin.(framework.PreFilter); ok {
		result, status := p.PreFilter(ctx, state, info)
		if status.IsSkip() {
			return nil
		}
		if !status.IsSuccess() {
			return status
		}
		if result != nil && result.NodeNames != nil {
			if _, named := result.NodeNames[node.Name()]; !named {
				return framework.NewStatus(framework.UnschedulableAndUnresolvable, "left out by PreFilter")
			}
		}
	}
	if f, ok := plugin.(framework.Filter); ok {
		return f.Filter(ctx, state, info, node)
	}
	return nil
}

// Scores runs the plugin's PreScore, Score and NormalizeScore, and returns nil where
// it skipped the pod.
func Scores(ctx context.Context, plugin framework.Score, pod *core.Pod, nodes ...*framework.NodeInfo) ([]int64, *framework.Status) {
	state, info := framework.NewCycleState(nil), framework.NewPodInfo(pod)
	setNodes(state, nodes)
	if p, ok := plugin.(framework.PreScore); ok {
		if status := p.PreScore(ctx, state, info, nodes); status.IsSkip() {
			return nil, nil
		} else if !status.IsSuccess() {
			return nil, status
		}
	}
	scores := make([]int64, len(nodes))
	for i, node := range nodes {
		score, status := plugin.Score(ctx, state, info, node)
		if !status.IsSuccess() {
			return nil, status
		}
		scores[i] = score
	}
	if n, ok := plugin.(framework.ScoreExtensions); ok {
		if status := n.NormalizeScore(ctx, state, info, scores); !status.IsSuccess() {
			return nil, status
		}
	}
	return scores, nil
}

func setNodes(state *framework.CycleState, nodes []*framework.NodeInfo) {
	state.Nodes = nodes
	state.Image = func(name string) *framework.Image {
		for _, node := range nodes {
			for _, image := range node.Images {
				if image.Name == name {
					return image
				}
			}
		}
		return nil
	}
	for _, node := range nodes {
		if len(node.WithAffinity) > 0 {
			state.WithAffinity = append(state.WithAffinity, node)
		}
	}
}
