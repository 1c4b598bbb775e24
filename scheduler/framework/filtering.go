package framework

import (
	"context"
	"fmt"
	"strings"
)

// PreFilterOutcome is the combined result of all PreFilter plugins.
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

// LeftOut is the status of a node that the plugins left out.
func (o PreFilterOutcome) LeftOut() *Status {
	reason := fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", strings.Join(o.Narrowed, " "))
	return NewStatus(UnschedulableAndUnresolvable, reason).By(o.Narrowed[0])
}

// RunPreFilter calls every PreFilter plugin. A status that is not a success
// holds for all nodes.
func (p *Profile) RunPreFilter(ctx context.Context, state *CycleState, pod *PodInfo) (PreFilterOutcome, *Status) {
	var merged *PreFilterResult
	var narrowed []string
	for i, plugin := range p.PreFilter {
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
			return PreFilterOutcome{}, status.running("PreFilter", plugin)
		}
		if extended, ok := plugin.(PreFilterExtensions); ok {
			state.extensions = append(state.extensions, extended)
		}
		if result != nil && result.NodeNames != nil {
			narrowed = append(narrowed, plugin.Name())
			merged = merged.merge(result)
			if len(merged.NodeNames) == 0 {
				// Who asks the filters nevertheless, to explain, can't ask those of the others.
				for _, left := range p.PreFilter[i+1:] {
					state.skipFilter(left.Name())
				}
				break
			}
		}
	}
	if merged == nil {
		return PreFilterOutcome{}, nil
	}
	return PreFilterOutcome{NodeNames: merged.NodeNames, Narrowed: narrowed}, nil
}

// Unprepared is the status of a Filter that finds nothing of its PreFilter's, because
// the profile disables that. To let the node pass would break the pod's rules unseen;
// kube-scheduler's plugins fail as well.
func Unprepared(plugin string) *Status {
	return AsError(fmt.Errorf("%s filters nodes only after its PreFilter, which the profile disables", plugin)).By(plugin)
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
			return AsError(fmt.Errorf("running %q filter plugin: node %s: %w", plugin.Name(), node.Name(), status.Err()))
		}
	}
	return nil
}

// RunFiltersWithNominatedPods asks filters about a node together with the pods that
// are nominated to it. The pod must fit beside them, and also without them, because
// they may never come.
func (p *Profile) RunFiltersWithNominatedPods(ctx context.Context, others []*PodInfo, filters []Filter, state *CycleState, pod *PodInfo,
	node *NodeInfo) *Status {
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
	return extend(state, func(e PreFilterExtensions) *Status { return e.AddPod(ctx, state, pod, added, node) })
}

// RunRemovePod takes a pod from a node of a what-if.
func (p *Profile) RunRemovePod(ctx context.Context, state *CycleState, pod, removed *PodInfo, node *NodeInfo) *Status {
	node.RemovePod(removed.Pod.UID)
	return extend(state, func(e PreFilterExtensions) *Status { return e.RemovePod(ctx, state, pod, removed, node) })
}

func extend(state *CycleState, call func(PreFilterExtensions) *Status) *Status {
	for _, plugin := range state.extensions {
		if status := call(plugin); !status.IsSuccess() {
			return AsError(fmt.Errorf("running PreFilter plugin %q in a what-if: %w", plugin.Name(), status.Err()))
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
			return "", status
		}
	}
	if len(p.PostFilter) == 0 {
		return "", nil
	}
	return "", NewStatus(Unschedulable, reasons...)
}
