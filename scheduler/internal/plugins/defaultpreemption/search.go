package defaultpreemption

import (
	"cmp"
	"context"
	"slices"
	"time"

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

	found     int            // candidates, before extenders were asked
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
	s.found = len(found)
	return found, ctx.Err()
}

// selectVictimsOnNode finds out which pods would have to leave a node. It removes all
// pods of lower priority, and puts back, the most important first, those that can
// stay. Without a candidate the status says why; it is nil if no pod can go.
func (s *search) selectVictimsOnNode(ctx context.Context, filters []framework.Filter,
	node *framework.NodeInfo) (*candidate, *framework.Status) {
	s.lower = s.lower[:0]
	for _, other := range node.Pods {
		if other.Priority < s.pod.Priority {
			s.lower = append(s.lower, other)
		}
	}
	if len(s.lower) == 0 {
		return nil, nil
	}
	what := whatIf{search: s, filters: filters, state: s.state.WhatIf(), node: &s.what, nominated: s.services.Nominator.Before(s.pod, node)}
	node.CopyTo(what.node)
	for _, other := range s.lower {
		if status := what.remove(ctx, other); !status.IsSuccess() {
			return nil, status
		}
	}
	if status := what.fits(ctx); !status.IsSuccess() {
		return nil, status
	}
	slices.SortStableFunc(s.lower, importance)
	violating, others := s.budgets.filterPodsWithPDBViolation(s.lower)
	disrupted, status := what.reprieve(ctx, violating)
	if !status.IsSuccess() {
		return nil, status
	}
	undisrupted, status := what.reprieve(ctx, others)
	if !status.IsSuccess() {
		return nil, status
	}
	c := &candidate{node: node, victims: slices.Concat(disrupted, undisrupted), violations: len(disrupted)}
	if len(c.victims) == 0 {
		return nil, nil // it fits by now: the next attempt will see
	}
	if c.violations > 0 { // else they are in order
		slices.SortStableFunc(c.victims, importance)
	}
	return c, nil
}

// whatIf is a node on which pods are removed and put back.
type whatIf struct {
	*search
	filters   []framework.Filter
	state     *framework.CycleState
	node      *framework.NodeInfo
	nominated []*framework.PodInfo // those that come before the pod
}

func (w *whatIf) remove(ctx context.Context, other *framework.PodInfo) *framework.Status {
	return w.refused.Profile.RunRemovePod(ctx, w.state, w.pod, other, w.node)
}

func (w *whatIf) fits(ctx context.Context) *framework.Status {
	return w.refused.Profile.RunFiltersWithNominatedPods(ctx, w.nominated, w.filters, w.state, w.pod, w.node)
}

// reprieve puts back those of the pods that can stay, and returns the others.
func (w *whatIf) reprieve(ctx context.Context, pods []*framework.PodInfo) (victims []*framework.PodInfo, status *framework.Status) {
	for _, other := range pods {
		if status := w.refused.Profile.RunAddPod(ctx, w.state, w.pod, other, w.node); !status.IsSuccess() {
			return nil, status
		}
		switch status := w.fits(ctx); {
		case status.IsSuccess():
			continue // it can stay
		case !status.IsRejected():
			return nil, status
		}
		if status := w.remove(ctx, other); !status.IsSuccess() {
			return nil, status
		}
		victims = append(victims, other)
	}
	return victims, nil
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
