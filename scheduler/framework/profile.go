package framework

import (
	"context"
	"fmt"
	"slices"
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

// RunReserve tells every Reserve plugin; on a failure the caller must call
// RunUnreserve.
func (p *Profile) RunReserve(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status {
	for _, plugin := range p.Reserve {
		status := state.observe(plugin, "Reserve", func() *Status { return plugin.Reserve(ctx, state, pod, node) })
		if !status.IsSuccess() {
			return status.running("Reserve", plugin)
		}
	}
	return nil
}

// RunUnreserve undoes RunReserve, in the opposite order.
func (p *Profile) RunUnreserve(ctx context.Context, state *CycleState, pod *PodInfo, node string) {
	for _, plugin := range slices.Backward(p.Reserve) {
		plugin.Unreserve(ctx, state, pod, node)
	}
}

// RunPermit asks every Permit plugin. If none rejects the pod, it returns those
// that make it wait, and for how long.
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
			return nil, status.running("Permit", plugin)
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
			return status.running("PreBind", plugin)
		}
	}
	return nil
}

// RunBind calls Bind plugins until one does not skip.
func (p *Profile) RunBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status {
	for _, plugin := range p.Bind {
		status := state.observe(plugin, "Bind", func() *Status { return plugin.Bind(ctx, state, pod, node) })
		if !status.IsSkip() {
			return status.running("Bind", plugin)
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

// QueueingHints maps every plugin that can reject a pod to the events it waits
// for; a nil slice stands for every event.
func (p *Profile) QueueingHints() map[string][]ClusterEventWithHint {
	hints := map[string][]ClusterEventWithHint{}
	note := func(plugin Plugin) {
		if _, known := hints[plugin.Name()]; known {
			return
		}
		if e, ok := plugin.(EnqueueExtensions); ok {
			hints[plugin.Name()] = e.EventsToRegister()
			return
		}
		hints[plugin.Name()] = nil
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
	return hints
}
