package framework

import (
	"context"
	"time"

	"kctl/proto/core"
)

// MaxNodeScore and MinNodeScore bound a plugin's score of a node, after
// NormalizeScore and before its weight.
const (
	MaxNodeScore int64 = 100
	MinNodeScore int64 = 0
)

// Plugin is implemented by every plugin. It takes part in the extension points
// whose interfaces it implements as well.
type Plugin interface {
	Name() string
}

// PreEnqueue is asked before a pod may enter the active queue, or back off on its
// way there. A pod that is rejected here is gated: it is not attempted, and no event
// is written for it. It is asked about again after the events that the plugin
// registered (EnqueueExtensions), or after any without that. PreEnqueue is called
// under the queue's lock and must be quick.
type PreEnqueue interface {
	Plugin
	PreEnqueue(ctx context.Context, pod *core.Pod) *Status
}

// QueueSort orders the active queue. Every profile has the same one.
type QueueSort interface {
	Plugin
	Less(a, b *QueuedPodInfo) bool
}

// PreFilter is called once an attempt, before any node is looked at. It may
// prepare state, reject the pod for every node, or name the only nodes worth
// looking at (nil for all).
type PreFilter interface {
	Plugin
	PreFilter(ctx context.Context, state *CycleState, pod *PodInfo) (*PreFilterResult, *Status)
}

// PreFilterExtensions is for a PreFilter plugin whose state depends on the pods
// on nodes. It is called for pods that are added to a node, or removed from it,
// in a what-if, and updates the state accordingly; node has already changed.
// What it keeps in the state must be a Cloner.
type PreFilterExtensions interface {
	PreFilter
	AddPod(ctx context.Context, state *CycleState, pod, added *PodInfo, node *NodeInfo) *Status
	RemovePod(ctx context.Context, state *CycleState, pod, removed *PodInfo, node *NodeInfo) *Status
}

// Filter decides whether a pod can run on a node. It is called for many nodes
// in one attempt, possibly from several goroutines, and changes nothing.
type Filter interface {
	Plugin
	Filter(ctx context.Context, state *CycleState, pod *PodInfo, node *NodeInfo) *Status
}

// PostFilter is called when no node passed the filters. It may make room, and
// names the node where there will be some; an empty name and Unschedulable if
// it can't. The reasons of its status are for people either way.
type PostFilter interface {
	Plugin
	PostFilter(ctx context.Context, state *CycleState, pod *PodInfo, refused Refused) (node string, status *Status)
}

// Refused is what is known about an attempt that found no node.
type Refused struct {
	Profile *Profile
	// Nodes were refused for a reason that their pods may have caused.
	Nodes []*NodeInfo
}

// PreScore is called once an attempt with the nodes that passed all filters,
// when there is more than one. It must not change nodes.
type PreScore interface {
	Plugin
	PreScore(ctx context.Context, state *CycleState, pod *PodInfo, nodes []*NodeInfo) *Status
}

// Score ranks a node; more is better.
type Score interface {
	Plugin
	Score(ctx context.Context, state *CycleState, pod *PodInfo, node *NodeInfo) (int64, *Status)
}

// ScoreExtensions is for a Score plugin that needs all nodes' scores to scale them to
// between MinNodeScore and MaxNodeScore. It changes them in place.
type ScoreExtensions interface {
	Score
	NormalizeScore(ctx context.Context, state *CycleState, pod *PodInfo, scores []int64) *Status
}

// Reserve is called when a pod has been assumed on a node, before it is bound.
// Unreserve must undo it, must be callable without a Reserve before, and cannot
// fail.
type Reserve interface {
	Plugin
	Reserve(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status
	Unreserve(ctx context.Context, state *CycleState, pod *PodInfo, node string)
}

// Permit is asked last before a pod's binding begins: Success lets it go on,
// Wait holds it back for at most the time returned (15 minutes at the longest),
// and everything else rejects it. A pod that waits keeps its room on the node;
// the plugin ends the waiting through Handle.Waiting.
type Permit interface {
	Plugin
	Permit(ctx context.Context, state *CycleState, pod *PodInfo, node string) (*Status, time.Duration)
}

// PreBind does what must be done before the pod is bound. It runs beside the
// next pods' attempts.
type PreBind interface {
	Plugin
	PreBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status
}

// LongPreBind is for a PreBind plugin that may have to wait long for others. If it
// says so for a pod, its PreBind does not count towards the limit on concurrent
// bindings, and has no timeout.
type LongPreBind interface {
	PreBind
	PreBindTakesLong(state *CycleState) bool
}

// Bind binds the pod to the node, or answers Skip to leave it to the next one.
//
// After an error that leaves the outcome open (no answer from the API server, or one
// like 504; see rest.Unanswered), Bind is called again with the same pod and node
// until there is an answer; the pod keeps its room meanwhile. After any other error
// the pod is read, and tried again unless it is bound.
type Bind interface {
	Plugin
	Bind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status
}

// PostBind is called when the pod has been bound.
type PostBind interface {
	Plugin
	PostBind(ctx context.Context, state *CycleState, pod *PodInfo, node string)
}

// EnqueueExtensions says which events may make a pod schedulable that this plugin
// rejected. For a plugin without it, every event counts as relevant.
type EnqueueExtensions interface {
	Plugin
	EventsToRegister() []ClusterEventWithHint
}

// PreFilterResult narrows the nodes that are looked at to NodeNames; nil means
// all nodes.
type PreFilterResult struct {
	NodeNames map[string]struct{}
}

// merge intersects two results.
func (r *PreFilterResult) merge(other *PreFilterResult) *PreFilterResult {
	if other == nil || other.NodeNames == nil {
		return r
	}
	if r == nil || r.NodeNames == nil {
		return other
	}
	both := &PreFilterResult{NodeNames: map[string]struct{}{}}
	for name := range r.NodeNames {
		if _, ok := other.NodeNames[name]; ok {
			both.NodeNames[name] = struct{}{}
		}
	}
	return both
}
