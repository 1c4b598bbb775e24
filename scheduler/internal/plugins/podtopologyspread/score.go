package podtopologyspread

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// scoreState has, for each preferred constraint, the domains of the nodes to be
// scored, the pods in each domain, and what the constraint counts for.
type scoreState struct {
	constraints []constraint
	domains     []map[string]bool // nil where each node is a domain: those are counted when they are scored
	pods        []framework.Tally
	weights     []float64
	// Nodes that lack a label take part in no domain, and come last.
	ignored map[string]bool
	ranked  []string // the nodes' names, in the order that they are scored
}

// PreScore counts pods by domain.
func (p *Plugin) PreScore(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	nodes []*framework.NodeInfo) *framework.Status {
	preferred, err := p.constraints(pod.Pod, corev1.ScheduleAnyway)
	if err != nil {
		return framework.AsError(err)
	}
	if len(preferred) == 0 {
		return skip
	}
	s := &scoreState{
		constraints: preferred,
		ignored:     map[string]bool{},
		domains:     make([]map[string]bool, len(preferred)),
		pods:        make([]framework.Tally, len(preferred)),
	}
	needsAll := len(pod.Pod.Spec.TopologySpreadConstraints) > 0 || !p.options.System
	s.findDomains(nodes, needsAll)
	s.countPods(state, pod.Pod, needsAll)
	state.Write(scoreKey, s)
	return nil
}

// findDomains finds the domains of the nodes to be scored.
func (s *scoreState) findDomains(nodes []*framework.NodeInfo, needsAll bool) {
	hosts := make([]int, len(s.constraints))
	for i := range s.constraints {
		if s.constraints[i].key != corev1.LabelHostname {
			s.domains[i] = map[string]bool{}
		}
	}
	for _, node := range nodes {
		s.ranked = append(s.ranked, node.Node.Name)
		if needsAll && !hasAll(node.Node, s.constraints) {
			s.ignored[node.Node.Name] = true
			continue
		}
		for i := range s.constraints {
			if s.domains[i] == nil {
				hosts[i]++
			} else {
				s.domains[i][node.Node.Labels[s.constraints[i].key]] = true // nodes without the label are one domain, too
			}
		}
	}
	for i := range s.constraints {
		// The more domains there are, the less a single pod matters.
		s.weights = append(s.weights, math.Log(float64(hosts[i]+len(s.domains[i])+2)))
	}
}

// countPods counts the pods of all nodes by domain.
func (s *scoreState) countPods(state *framework.CycleState, pod *core.Pod, needsAll bool) {
	tallies := newTallies(state, pod, nodeaffinity.GetRequiredNodeAffinity(pod), s.constraints, needsAll)
	for i := range s.constraints {
		if len(s.domains[i]) > 0 {
			s.pods[i] = tallies.pods(&s.constraints[i])
		}
	}
}

// Score is the weighted number of pods in the node's domains; NormalizeScore
// reverses it.
func (*Plugin) Score(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) (int64, *framework.Status) {
	s, ok := state.Read(scoreKey).(*scoreState)
	if !ok || s.ignored[node.Node.Name] {
		return 0, nil
	}
	var score float64
	for i := range s.constraints {
		c := &s.constraints[i]
		domain, has := node.Node.Labels[c.key]
		if !has {
			continue
		}
		count := s.pods[i][c.key][domain]
		if s.domains[i] == nil {
			count = c.matching(pod.Pod.Namespace, node)
		}
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
