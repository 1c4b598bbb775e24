package interpodaffinity

import (
	"context"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// PreScore adds up what each place is worth: to the pod, for the pods that are
// there, and to them, for this one.
func (p *Plugin) PreScore(_ context.Context, state *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	own := pod.Affinity
	prefers := own != nil && (len(own.Preferred) > 0 || len(own.PreferredAnti) > 0)
	worth := counts{}
	if prefers {
		for _, node := range state.Nodes {
			for _, existing := range node.Pods {
				p.weigh(worth, own.Preferred, existing.Pod, node.Node, 1)
				p.weigh(worth, own.PreferredAnti, existing.Pod, node.Node, -1)
			}
		}
	}
	for _, node := range state.WithAffinity {
		for _, existing := range node.WithAffinity {
			p.weighExisting(worth, existing.Affinity, pod.Pod, node.Node)
		}
	}
	if len(worth) == 0 {
		return skip
	}
	state.Write(scoreKey, worth)
	return nil
}

// weigh adds the terms that match pod to the worth of where node is.
func (p *Plugin) weigh(worth counts, terms []framework.WeightedTerm, pod *core.Pod, node *core.Node, sign int64) {
	for i := range terms {
		if term := &terms[i]; term.Matches(pod, p.namespaces) {
			worth.add(node, term.TopologyKey, sign*term.Weight)
		}
	}
}

func (p *Plugin) weighExisting(worth counts, existing *framework.PodAffinity, pod *core.Pod, node *core.Node) {
	if p.options.HardPodAffinityWeight > 0 {
		for i := range existing.Required {
			if term := &existing.Required[i]; term.Matches(pod, p.namespaces) {
				worth.add(node, term.TopologyKey, p.options.HardPodAffinityWeight)
			}
		}
	}
	if p.options.IgnorePreferredTermsOfExistingPods {
		return
	}
	p.weigh(worth, existing.Preferred, pod, node, 1)
	p.weigh(worth, existing.PreferredAnti, pod, node, -1)
}

// Score is the worth of all places that the node is in.
func (p *Plugin) Score(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	worth, _ := state.Read(scoreKey).(counts)
	var score int64
	for key, value := range node.Node.Labels {
		score += worth[place{key, value}]
	}
	return score, nil
}

// NormalizeScore spreads the scores over the whole scale; they may be negative.
func (*Plugin) NormalizeScore(_ context.Context, _ *framework.CycleState, _ *framework.PodInfo, scores []int64) *framework.Status {
	if len(scores) == 0 {
		return nil
	}
	least, most := scores[0], scores[0]
	for _, s := range scores {
		least, most = min(least, s), max(most, s)
	}
	for i, s := range scores {
		scores[i] = 0
		if most > least {
			scores[i] = int64(float64(framework.MaxNodeScore) * (float64(s-least) / float64(most-least)))
		}
	}
	return nil
}
