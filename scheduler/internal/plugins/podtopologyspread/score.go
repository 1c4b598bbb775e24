package podtopologyspread

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"kctl/scheduler/framework"
)

// scoreState has, for each preferred constraint, the pods in each domain of the
// nodes to be scored, and what the constraint counts for.
type scoreState struct {
	constraints []constraint
	domains     []map[string]int64
	weights     []float64
	// Nodes that lack a label take part in no domain, and come last.
	ignored map[string]bool
	ranked  []string // the nodes' names, in the order that they are scored
}

// PreScore counts pods by domain.
func (*Plugin) PreScore(_ context.Context, state *framework.CycleState, pod *framework.PodInfo, nodes []*framework.NodeInfo) *framework.Status {
	preferred, err := constraints(pod.Pod, corev1.ScheduleAnyway)
	if err != nil {
		return framework.AsError(err)
	}
	if len(preferred) == 0 {
		return skip
	}
	s := &scoreState{constraints: preferred, ignored: map[string]bool{}}
	for range preferred {
		s.domains = append(s.domains, map[string]int64{})
	}
	for _, node := range nodes {
		s.ranked = append(s.ranked, node.Node.Name)
		if !hasAll(node.Node, preferred) {
			s.ignored[node.Node.Name] = true
			continue
		}
		for i := range preferred {
			s.domains[i][node.Node.Labels[preferred[i].key]] += 0
		}
	}
	for i := range preferred {
		// The more domains there are, the less one pod more or less shows.
		s.weights = append(s.weights, math.Log(float64(len(s.domains[i])+2)))
	}
	own := nodeaffinity.GetRequiredNodeAffinity(pod.Pod)
	for _, node := range state.Nodes {
		if !hasAll(node.Node, preferred) {
			continue
		}
		for i := range preferred {
			c := &preferred[i]
			domain := node.Node.Labels[c.key]
			if _, wanted := s.domains[i][domain]; wanted && c.counts(pod.Pod, own, node.Node) {
				s.domains[i][domain] += c.matching(pod.Pod.Namespace, node)
			}
		}
	}
	state.Write(scoreKey, s)
	return nil
}

// Score is the weighted number of pods in the node's domains; Normalize turns
// it round.
func (*Plugin) Score(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	s, ok := state.Read(scoreKey).(*scoreState)
	if !ok || s.ignored[node.Node.Name] {
		return 0, nil
	}
	var score float64
	for i := range s.constraints {
		c := &s.constraints[i]
		count := s.domains[i][node.Node.Labels[c.key]]
		score += float64(count)*s.weights[i] + float64(c.maxSkew-1)
	}
	return int64(math.Round(score)), nil
}

// NormalizeScore gives the emptiest domains the most.
func (*Plugin) NormalizeScore(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, scores []int64) *framework.Status {
	s, ok := state.Read(scoreKey).(*scoreState)
	if !ok {
		return nil
	}
	least, most := int64(math.MaxInt64), int64(0)
	for i, score := range scores {
		if !s.ignored[s.ranked[i]] {
			least, most = min(least, score), max(most, score)
		}
	}
	for i, score := range scores {
		switch {
		case s.ignored[s.ranked[i]]:
			scores[i] = 0
		case most == 0:
			scores[i] = framework.MaxNodeScore
		default:
			scores[i] = framework.MaxNodeScore * (most + least - score) / most
		}
	}
	return nil
}
