package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Profile is the set of plugins, in the order of their calls, that schedules
// the pods which name it. It is data: the profile package builds it, and it is
// not changed afterwards.
type Profile struct {
	SchedulerName string
	// PercentageOfNodesToScore ends the search for feasible nodes early in
	// large clusters; 0 means a percentage that falls with the cluster's size.
	PercentageOfNodesToScore int32

	PreEnqueue []PreEnqueue
	QueueSort  QueueSort
	PreFilter  []PreFilter
	Filter     []Filter
	PostFilter []PostFilter
	PreScore   []PreScore
	Score      []WeightedScore
	Reserve    []Reserve
	Permit     []Permit
	PreBind    []PreBind
	Bind       []Bind
	PostBind   []PostBind
}

// WeightedScore is a Score plugin and what its scores count for.
type WeightedScore struct {
	Score
	Weight int64
}

// RunPreEnqueue returns the first rejection, or nil.
func (p *Profile) RunPreEnqueue(ctx context.Context, pod *PodInfo) *Status {
	for _, plugin := range p.PreEnqueue {
		if status := plugin.PreEnqueue(ctx, pod.Pod); !status.IsSuccess() {
			return status.By(plugin.Name())
		}
	}
	return nil
}

// PreFilterOutcome is what all PreFilter plugins together said.
type PreFilterOutcome struct {
	// NodeNames are the only nodes worth looking at; nil for all. Narrowed
	// names the plugins that left the others out.
	NodeNames map[string]struct{}
	Narrowed  []string
}

// LeavesOut reports whether a node is not worth looking at.
func (o PreFilterOutcome) LeavesOut(node string) bool {
	if o.NodeNames == nil {
		return false
	}
	_, named := o.NodeNames[node]
	return !named
}

// LeftOut is what the plugins say of a node that they left out.
func (o PreFilterOutcome) LeftOut() *Status {
	reason := fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", strings.Join(o.Narrowed, " "))
	return NewStatus(UnschedulableAndUnresolvable, reason).By(o.Narrowed[0])
}

// RunPreFilter calls every PreFilter plugin. A status that is not a success
// holds for all nodes.
func (p *Profile) RunPreFilter(ctx context.Context, state *CycleState, pod *PodInfo) (PreFilterOutcome, *Status) {
	var merged *PreFilterResult
	var narrowed []string
	for _, plugin := range p.PreFilter {
		var result *PreFilterResult
		status := state.observe(plugin, "PreFilter", func() (s *Status) {
			result, s = plugin.PreFilter(ctx, state, pod)
			return s
		})
		switch {
		case status.IsSkip():
			state.skipFilter(plugin.Name())
			continue
		case status.IsRejected():
			return PreFilterOutcome{}, status.By(plugin.Name())
		case !status.IsSuccess():
			return PreFilterOutcome{}, AsError(fmt.Errorf("prefilter plugin %s: %w", plugin.Name(), status.Err()))
		}
		if extended, ok := plugin.(PreFilterExtensions); ok {
			state.extensions = append(state.extensions, extended)
		}
		if result != nil && result.NodeNames != nil {
			narrowed = append(narrowed, plugin.Name())
			merged = merged.merge(result)
			if len(merged.NodeNames) == 0 {
				break
			}
		}
	}
	if merged == nil {
		return PreFilterOutcome{}, nil
	}
	return PreFilterOutcome{NodeNames: merged.NodeNames, Narrowed: narrowed}, nil
}

// ActiveFilters are the Filter plugins that did not skip the pod.
func (p *Profile) ActiveFilters(state *CycleState) []Filter {
	if len(state.skip) == 0 {
		return p.Filter
	}
	active := make([]Filter, 0, len(p.Filter))
	for _, plugin := range p.Filter {
		if !state.skipsFilter(plugin.Name()) {
			active = append(active, plugin)
		}
	}
	return active
}

// RunFilters asks filters about one node and returns the first refusal.
func RunFilters(ctx context.Context, filters []Filter, state *CycleState, pod *PodInfo, node *NodeInfo) *Status {
	for _, plugin := range filters {
		var status *Status
		if state.Observer == nil { // called for many nodes: not even a closure
			status = plugin.Filter(ctx, state, pod, node)
		} else {
			status = state.observe(plugin, "Filter", func() *Status { return plugin.Filter(ctx, state, pod, node) })
		}
		switch {
		case status.IsSuccess():
		case status.IsRejected():
			return status.By(plugin.Name())
		default:
			return AsError(fmt.Errorf("filter plugin %s on node %s: %w", plugin.Name(), node.Name(), status.Err()))
		}
	}
	return nil
}

// RunFiltersWith asks filters about a node on which others count, too: pods
// that have been promised room there. The pod must fit beside them, and also
// without them, because they may never come.
func (p *Profile) RunFiltersWith(ctx context.Context, others []*PodInfo, filters []Filter, state *CycleState, pod *PodInfo, node *NodeInfo) *Status {
	if len(others) > 0 {
		full, with := state.WhatIf(), node.Snapshot()
		for _, other := range others {
			if status := p.RunAddPod(ctx, full, pod, other, with); !status.IsSuccess() {
				return status
			}
		}
		if status := RunFilters(ctx, filters, full, pod, with); !status.IsSuccess() {
			return status
		}
	}
	return RunFilters(ctx, filters, state, pod, node)
}

// RunAddPod puts a pod on a node of a what-if. state and node are the caller's
// own copies.
func (p *Profile) RunAddPod(ctx context.Context, state *CycleState, pod, added *PodInfo, node *NodeInfo) *Status {
	node.AddPod(added)
	return p.extend(state, func(e PreFilterExtensions) *Status { return e.AddPod(ctx, state, pod, added, node) })
}

// RunRemovePod takes a pod from a node of a what-if.
func (p *Profile) RunRemovePod(ctx context.Context, state *CycleState, pod, removed *PodInfo, node *NodeInfo) *Status {
	node.RemovePod(removed.Pod.UID)
	return p.extend(state, func(e PreFilterExtensions) *Status { return e.RemovePod(ctx, state, pod, removed, node) })
}

func (p *Profile) extend(state *CycleState, call func(PreFilterExtensions) *Status) *Status {
	for _, plugin := range state.extensions {
		if status := call(plugin); !status.IsSuccess() {
			return AsError(fmt.Errorf("prefilter plugin %s, in a what-if: %w", plugin.Name(), status.Err()))
		}
	}
	return nil
}

// RunPostFilter calls PostFilter plugins until one makes room. Without one the
// status is nil.
func (p *Profile) RunPostFilter(ctx context.Context, state *CycleState, pod *PodInfo, refused Refused) (node string, status *Status) {
	var reasons []string
	refused.Profile = p
	for _, plugin := range p.PostFilter {
		var node string
		status := state.observe(plugin, "PostFilter", func() (s *Status) {
			node, s = plugin.PostFilter(ctx, state, pod, refused)
			return s
		})
		switch {
		case status.IsSuccess():
			return node, status
		case status.IsRejected():
			reasons = append(reasons, status.Reasons()...)
		default:
			return "", AsError(fmt.Errorf("postfilter plugin %s: %w", plugin.Name(), status.Err()))
		}
	}
	if len(p.PostFilter) == 0 {
		return "", nil
	}
	return "", NewStatus(Unschedulable, reasons...)
}

// RunPreScore calls every PreScore plugin.
func (p *Profile) RunPreScore(ctx context.Context, state *CycleState, pod *PodInfo, nodes []*NodeInfo) *Status {
	for _, plugin := range p.PreScore {
		status := state.observe(plugin, "PreScore", func() *Status { return plugin.PreScore(ctx, state, pod, nodes) })
		if status.IsSkip() {
			state.skipScore(plugin.Name())
		} else if !status.IsSuccess() {
			return AsError(fmt.Errorf("prescore plugin %s: %w", plugin.Name(), status.Err()))
		}
	}
	return nil
}

// ActiveScores are the Score plugins that did not skip the pod.
func (p *Profile) ActiveScores(state *CycleState) []WeightedScore {
	active := make([]WeightedScore, 0, len(p.Score))
	for _, plugin := range p.Score {
		if skipped := state.skips(plugin.Name()); skipped == nil || !skipped.score {
			active = append(active, plugin)
		}
	}
	return active
}

// Scores are those of the nodes of an attempt. They may serve the next one, too:
// in large clusters they are most of the memory that an attempt needs.
type Scores struct {
	// Totals are the weighted sums of all plugins' scores, one for each node.
	Totals []int64
	of     []int64 // one plugin's
}

// cleared is n zeros, in the memory of scores where there is enough.
func cleared(scores []int64, n int) []int64 {
	scores = slices.Grow(scores[:0], n)[:n]
	clear(scores)
	return scores
}

// RunScore has all plugins score nodes.
func (p *Profile) RunScore(ctx context.Context, state *CycleState, pod *PodInfo, nodes []*NodeInfo, scores *Scores) *Status {
	scores.Totals = cleared(scores.Totals, len(nodes))
	return p.RunScoreEach(ctx, state, pod, nodes, scores, func(plugin WeightedScore, of []int64) {
		for i, score := range of {
			scores.Totals[i] += score * plugin.Weight
		}
	})
}

// RunScoreEach gives the scores of each plugin that does not skip the pod, one
// for each node and before the plugin's weight, to take, which must not keep them.
func (p *Profile) RunScoreEach(ctx context.Context, state *CycleState, pod *PodInfo, nodes []*NodeInfo, room *Scores, take func(plugin WeightedScore, scores []int64)) *Status {
	scores := cleared(room.of, len(nodes))
	room.of = scores
	for _, plugin := range p.ActiveScores(state) {
		if status := p.scoreNodes(ctx, plugin, state, pod, nodes, scores); !status.IsSuccess() {
			return status
		}
		if normalizer, ok := plugin.Score.(Normalize); ok {
			status := state.observe(plugin, "ScoreExtensionNormalize", func() *Status { return normalizer.NormalizeScore(ctx, state, pod, scores) })
			if !status.IsSuccess() {
				return AsError(fmt.Errorf("normalize plugin %s: %w", plugin.Name(), status.Err()))
			}
		}
		for i, score := range scores {
			if score < MinNodeScore || score > MaxNodeScore {
				return AsError(fmt.Errorf("score plugin %s gave node %s %d, which is not within [%d, %d]",
					plugin.Name(), nodes[i].Name(), score, MinNodeScore, MaxNodeScore))
			}
		}
		take(plugin, scores)
	}
	return nil
}

// scoreNodes has one plugin score all nodes.
func (p *Profile) scoreNodes(ctx context.Context, plugin WeightedScore, state *CycleState, pod *PodInfo, nodes []*NodeInfo, scores []int64) *Status {
	for i, node := range nodes {
		var began time.Time
		if state.Observer != nil {
			began = state.Observer.Now()
		}
		score, status := plugin.Score.Score(ctx, state, pod, node)
		if state.Observer != nil {
			state.Observer.Plugin(plugin.Name(), "Score", status.Code(), began)
		}
		if !status.IsSuccess() {
			return AsError(fmt.Errorf("score plugin %s on node %s: %w", plugin.Name(), node.Name(), status.Err()))
		}
		scores[i] = score
	}
	return nil
}

// RunReserve tells every Reserve plugin; on a failure the caller must call
// RunUnreserve.
func (p *Profile) RunReserve(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status {
	for _, plugin := range p.Reserve {
		status := state.observe(plugin, "Reserve", func() *Status { return plugin.Reserve(ctx, state, pod, node) })
		if !status.IsSuccess() {
			return status.By(plugin.Name())
		}
	}
	return nil
}

// RunUnreserve undoes RunReserve, in the opposite order.
func (p *Profile) RunUnreserve(ctx context.Context, state *CycleState, pod *PodInfo, node string) {
	for i := len(p.Reserve) - 1; i >= 0; i-- {
		p.Reserve[i].Unreserve(ctx, state, pod, node)
	}
}

// RunPermit asks every Permit plugin. Where none rejects the pod, it returns
// those that have it wait, and how long.
func (p *Profile) RunPermit(ctx context.Context, state *CycleState, pod *PodInfo, node string) (map[string]time.Duration, *Status) {
	var waits map[string]time.Duration
	for _, plugin := range p.Permit {
		var wait time.Duration
		status := state.observe(plugin, "Permit", func() (s *Status) {
			s, wait = plugin.Permit(ctx, state, pod, node)
			return s
		})
		switch status.Code() {
		case Success:
		case Wait:
			if waits == nil {
				waits = map[string]time.Duration{}
			}
			waits[plugin.Name()] = wait
		default:
			return nil, status.By(plugin.Name())
		}
	}
	return waits, nil
}

// PreBindTakesLong reports whether a plugin says so.
func (p *Profile) PreBindTakesLong(state *CycleState) bool {
	for _, plugin := range p.PreBind {
		if long, ok := plugin.(LongPreBind); ok && long.PreBindTakesLong(state) {
			return true
		}
	}
	return false
}

// RunPreBind calls every PreBind plugin.
func (p *Profile) RunPreBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status {
	for _, plugin := range p.PreBind {
		status := state.observe(plugin, "PreBind", func() *Status { return plugin.PreBind(ctx, state, pod, node) })
		if !status.IsSuccess() {
			return status.By(plugin.Name())
		}
	}
	return nil
}

// RunBind calls Bind plugins until one does not skip.
func (p *Profile) RunBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status {
	for _, plugin := range p.Bind {
		status := state.observe(plugin, "Bind", func() *Status { return plugin.Bind(ctx, state, pod, node) })
		if !status.IsSkip() {
			return status.By(plugin.Name())
		}
	}
	return AsError(fmt.Errorf("no bind plugin of profile %s took the pod", p.SchedulerName))
}

// RunPostBind tells every PostBind plugin.
func (p *Profile) RunPostBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) {
	for _, plugin := range p.PostBind {
		plugin.PostBind(ctx, state, pod, node)
	}
}

// Interests maps every plugin that can reject a pod to the events it waits
// for; a nil slice stands for every event.
func (p *Profile) Interests() map[string][]EventInterest {
	interests := map[string][]EventInterest{}
	note := func(plugin Plugin) {
		if _, known := interests[plugin.Name()]; known {
			return
		}
		if e, ok := plugin.(Enqueue); ok {
			interests[plugin.Name()] = e.EventsToRegister()
			return
		}
		interests[plugin.Name()] = nil
	}
	for _, plugin := range p.PreEnqueue {
		note(plugin)
	}
	for _, plugin := range p.PreFilter {
		note(plugin)
	}
	for _, plugin := range p.Filter {
		note(plugin)
	}
	for _, plugin := range p.Reserve {
		note(plugin)
	}
	for _, plugin := range p.Permit {
		note(plugin)
	}
	for _, plugin := range p.PreBind {
		note(plugin)
	}
	return interests
}
