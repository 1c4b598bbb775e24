package interpodaffinity

import (
	"context"
	"fmt"
	"slices"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// PreScore adds up the score of each place: by the pod's preferences about the
// pods there, and by theirs about this one.
func (p *Plugin) PreScore(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	_ []*framework.NodeInfo) *framework.Status {
	own := pod.Affinity
	if own == nil {
		own = &noAffinity
	}
	prefers := len(own.Preferred) > 0 || len(own.PreferredAnti) > 0
	if p.options.IgnorePreferredTermsOfExistingPods && !prefers {
		return skip // and with them what pods there have to be with
	}
	var sums worth
	if prefers {
		key := weightedKey(Name+" liked", own.Preferred) + weightedKey(" disliked", own.PreferredAnti)
		sums.liked = state.Tally(key, func(node *framework.NodeInfo, add framework.AddFunc) {
			for _, existing := range node.Pods {
				p.weigh(add, own.Preferred, existing.Pod, node.Node, 1)
				p.weigh(add, own.PreferredAnti, existing.Pod, node.Node, -1)
			}
		})
	}
	if len(state.WithAffinity) > 0 {
		key := identity(fmt.Sprint(Name, " liking ", p.options), pod.Pod)
		sums.liking = state.Tally(key, func(node *framework.NodeInfo, add framework.AddFunc) {
			for _, existing := range node.WithAffinity {
				p.weighExisting(add, existing.Affinity, pod.Pod, node.Node)
			}
		})
	}
	if len(sums.liked) == 0 && len(sums.liking) == 0 {
		return skip
	}
	state.Write(scoreKey, &sums)
	return nil
}

// worth holds the scores of places: by the pod's preferences, and by those of the pods
// there.
type worth struct{ liked, liking framework.Tally }

// weigh adds the weights of the terms that match pod to the place of node.
func (p *Plugin) weigh(add framework.AddFunc, terms []framework.WeightedTerm, pod *core.Pod, node *core.Node, sign int64) {
	for i := range terms {
		if term := &terms[i]; term.Matches(pod, p.namespaces) {
			add.At(node, term.TopologyKey, sign*term.Weight)
		}
	}
}

func (p *Plugin) weighExisting(add framework.AddFunc, existing *framework.PodAffinity, pod *core.Pod, node *core.Node) {
	if p.options.HardPodAffinityWeight > 0 {
		for i := range existing.Required {
			if term := &existing.Required[i]; term.Matches(pod, p.namespaces) {
				add.At(node, term.TopologyKey, p.options.HardPodAffinityWeight)
			}
		}
	}
	p.weigh(add, existing.Preferred, pod, node, 1)
	p.weigh(add, existing.PreferredAnti, pod, node, -1)
}

// Score is the sum of all places that the node is in.
func (p *Plugin) Score(_ context.Context, state *framework.CycleState, _ *framework.PodInfo,
	node *framework.NodeInfo) (int64, *framework.Status) {
	sums, ok := state.Read(scoreKey).(*worth)
	if !ok {
		return 0, nil
	}
	return sums.liked.On(node.Node) + sums.liking.On(node.Node), nil
}

// NormalizeScore spreads the scores over the whole scale; they may be negative.
func (*Plugin) NormalizeScore(_ context.Context, _ *framework.CycleState, _ *framework.PodInfo, scores []int64) *framework.Status {
	if len(scores) == 0 {
		return nil
	}
	least, most := slices.Min(scores), slices.Max(scores)
	for i, s := range scores {
		scores[i] = 0
		if most > least {
			scores[i] = int64(float64(framework.MaxNodeScore) * (float64(s-least) / float64(most-least)))
		}
	}
	return nil
}
