package defaultpreemption

import (
	"cmp"
	"context"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/extender"
)

// search looks for nodes that could be made to fit one pod.
type search struct {
	*Plugin
	refused framework.Refused
	state   *framework.CycleState
	pod     *framework.PodInfo
	budgets *budgets

	what  framework.NodeInfo   // the node of the what-if
	lower []*framework.PodInfo // on it, those that could go

	noVictims int            // nodes without a pod that could go
	reasons   map[string]int // of nodes where that would not help
}

// candidate is a node that could be made to fit, and at what cost.
type candidate struct {
	node       *framework.NodeInfo
	victims    []*framework.PodInfo // the most important first
	violations int                  // of disruption budgets
}

// findCandidates returns some of the nodes that could be made to fit: if there are
// many, looking at all costs more than finding the best would gain.
func (s *search) findCandidates(ctx context.Context) ([]*candidate, error) {
	nodes := s.refused.Nodes
	if len(nodes) == 0 {
		return nil, nil
	}
	enough := max(len(nodes)*s.options.MinCandidateNodesPercentage/100, s.options.MinCandidateNodesAbsolute)
	filters := s.refused.Profile.ActiveFilters(s.state)
	s.reasons = map[string]int{}
	var found []*candidate
	for i, start := 0, s.random(len(nodes)); i < len(nodes) && len(found) < enough && ctx.Err() == nil; i++ {
		c, status := s.selectVictimsOnNode(ctx, filters, nodes[(start+i)%len(nodes)])
		switch {
		case c != nil:
			found = append(found, c)
		case status.IsSuccess():
			s.noVictims++
		case status.IsRejected():
			for _, reason := range status.Reasons() {
				s.reasons[reason]++
			}
		default:
			return nil, status.Err()
		}
	}
	return found, ctx.Err()
}

// callExtenders returns what the extenders leave of the candidates.
func (s *search) callExtenders(ctx context.Context, candidates []*candidate) ([]*candidate, error) {
	if s.services.Extenders == nil || len(candidates) == 0 {
		return candidates, nil
	}
	asked := map[string]extender.Victims{}
	for _, c := range candidates {
		asked[c.node.Name()] = extender.Victims{Pods: c.victims, Violations: c.violations}
	}
	left, err := s.services.Extenders.Preempt(ctx, s.pod.Pod, asked)
	var remaining []*candidate
	for _, c := range candidates {
		if victims, stays := left[c.node.Name()]; stays {
			remaining = append(remaining, &candidate{node: c.node, victims: victims.Pods, violations: victims.Violations})
		}
	}
	return remaining, err
}

// victims finds out which pods would have to leave a node. It removes all pods
// of lower priority, and puts back, the most important first, those that can
// stay. Without a candidate the status says why; it is nil if no pod can go.
func (s *search) selectVictimsOnNode(ctx context.Context, filters []framework.Filter, node *framework.NodeInfo) (*candidate, *framework.Status) {
	s.lower = s.lower[:0]
	for _, other := range node.Pods {
		if other.Priority < s.pod.Priority {
			s.lower = append(s.lower, other)
		}
	}
	if len(s.lower) == 0 {
		return nil, nil
	}
	profile, what, state := s.refused.Profile, &s.what, s.state.WhatIf()
	node.CopyTo(what)
	for _, other := range s.lower {
		if status := profile.RunRemovePod(ctx, state, s.pod, other, what); !status.IsSuccess() {
			return nil, status
		}
	}
	before := s.services.Nominator.Before(s.pod, node)
	if status := profile.RunFiltersWithNominatedPods(ctx, before, filters, state, s.pod, what); !status.IsSuccess() {
		return nil, status
	}
	slices.SortStableFunc(s.lower, importance)
	c := &candidate{node: node}
	violating, others := s.budgets.filterPodsWithPDBViolation(s.lower)
	for i, group := range [][]*framework.PodInfo{violating, others} {
		for _, other := range group {
			if status := profile.RunAddPod(ctx, state, s.pod, other, what); !status.IsSuccess() {
				return nil, status
			}
			status := profile.RunFiltersWithNominatedPods(ctx, before, filters, state, s.pod, what)
			if status.IsSuccess() {
				continue // it can stay
			}
			if !status.IsRejected() {
				return nil, status
			}
			if status := profile.RunRemovePod(ctx, state, s.pod, other, what); !status.IsSuccess() {
				return nil, status
			}
			c.victims = append(c.victims, other)
			if i == 0 {
				c.violations++
			}
		}
	}
	if len(c.victims) == 0 {
		return nil, nil // it fits by now: the next attempt will see
	}
	if c.violations > 0 { // else they are in order
		slices.SortStableFunc(c.victims, importance)
	}
	return c, nil
}

// importance orders pods: higher priority first, and of equals the one that has
// run for longer.
func importance(a, b *framework.PodInfo) int {
	if by := cmp.Compare(b.Priority, a.Priority); by != 0 {
		return by
	}
	return started(a.Pod).Compare(started(b.Pod))
}

// started is when a pod began to run; a pod that did not yet has just done so.
func started(pod *core.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return time.Unix(1<<40, 0)
}

// better reports whether c costs less than other, in upstream's order: fewer
// broken budgets, a lower highest priority, a smaller sum of priorities, fewer
// victims, and the most important of them started later.
func (c *candidate) better(other *candidate) bool {
	highest := func(c *candidate) int32 { return c.victims[0].Priority }
	return cmp.Or(
		cmp.Compare(c.violations, other.violations),
		cmp.Compare(highest(c), highest(other)),
		cmp.Compare(c.sum(), other.sum()),
		cmp.Compare(len(c.victims), len(other.victims)),
		other.earliest().Compare(c.earliest()),
	) < 0
}

// sum adds the victims' priorities up, each raised above zero: among pods of
// negative priority, too, fewer are better.
func (c *candidate) sum() (total int64) {
	for _, v := range c.victims {
		total += int64(v.Priority) + 1<<31
	}
	return total
}

// earliest is when the first of the most important victims started.
func (c *candidate) earliest() time.Time {
	first := started(c.victims[0].Pod)
	for _, v := range c.victims[1:] {
		if v.Priority != c.victims[0].Priority {
			break
		}
		if at := started(v.Pod); at.Before(first) {
			first = at
		}
	}
	return first
}

// budgets are the disruption budgets that a search has asked for.
type budgets struct {
	of   func(namespace string) []*policyv1.PodDisruptionBudget
	seen map[string][]budget
}

type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

func newBudgets(of func(namespace string) []*policyv1.PodDisruptionBudget) *budgets {
	return &budgets{of: of, seen: map[string][]budget{}}
}

func (b *budgets) in(namespace string) []budget {
	if found, known := b.seen[namespace]; known {
		return found
	}
	var found []budget
	for _, pdb := range b.of(namespace) {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil || selector.Empty() && pdb.Spec.Selector == nil {
			continue // it is about no pod
		}
		found = append(found, budget{PodDisruptionBudget: pdb, selector: selector})
	}
	b.seen[namespace] = found
	return found
}

// filterPodsWithPDBViolation divides pods, in their order, into those whose eviction would violate a
// budget and those whose would not, counting the latter against the budgets.
func (b *budgets) filterPodsWithPDBViolation(pods []*framework.PodInfo) (violating, others []*framework.PodInfo) {
	var left map[*policyv1.PodDisruptionBudget]int32
	for _, pod := range pods {
		breaks := false
		budgets := b.in(pod.Pod.Namespace)
		if left == nil && len(budgets) > 0 {
			left = map[*policyv1.PodDisruptionBudget]int32{}
		}
		for _, pdb := range budgets {
			if len(pod.Pod.Labels) == 0 || !pdb.selector.Matches(labels.Set(pod.Pod.Labels)) {
				continue
			}
			if _, counted := pdb.Status.DisruptedPods[pod.Pod.Name]; counted {
				continue // it is on its way already
			}
			allowed, known := left[pdb.PodDisruptionBudget]
			if !known {
				allowed = pdb.Status.DisruptionsAllowed
			}
			left[pdb.PodDisruptionBudget] = allowed - 1
			breaks = breaks || allowed <= 0
		}
		if breaks {
			violating = append(violating, pod)
		} else {
			others = append(others, pod)
		}
	}
	return violating, others
}
