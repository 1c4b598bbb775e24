package framework

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrNoNodes says that there is no node at all.
var ErrNoNodes = errors.New("no nodes available to schedule pods")

// FitError says why no node could take a pod, in the words that users know
// from kube-scheduler.
type FitError struct {
	NumAllNodes int
	// PreFilterMessage is set where the pod was rejected for all nodes at once.
	PreFilterMessage string
	// Reasons counts the nodes for each reason.
	Reasons map[string]int
	// Plugins are those that refused; the events that they wait for wake the pod.
	Plugins map[string]struct{}
	// Pending are those among them that answered so.
	Pending map[string]struct{}
	// Resolvable are the nodes where other pods may have been in the way.
	Resolvable []*NodeInfo
	// noted is the status that was counted last: plugins return the same one for many nodes.
	noted *Status
	// PostFilterMessage is the outcome of the search for pods to evict.
	PostFilterMessage string
	// Failed says that the search failed, which no event repairs: the pod is tried again
	// after its back-off.
	Failed bool
}

// NewFitError returns a FitError without a refusal.
func NewFitError(nodes int) *FitError {
	return &FitError{NumAllNodes: nodes, Reasons: map[string]int{}, Plugins: map[string]struct{}{}}
}

// Refuse counts count nodes that status refused.
func (e *FitError) Refuse(status *Status, count int) {
	for _, reason := range status.Reasons() {
		e.Reasons[reason] += count
	}
	e.note(status)
}

// RefuseNode counts one node that status refused.
func (e *FitError) RefuseNode(node *NodeInfo, status *Status) {
	e.Refuse(status, 1)
	if status.Code() == Unschedulable {
		e.Resolvable = append(e.Resolvable, node)
	}
}

// note remembers which plugin refused.
func (e *FitError) note(status *Status) {
	if status == e.noted {
		return
	}
	e.noted = status
	e.Plugins[status.Plugin()] = struct{}{}
	if status.Code() == Pending {
		if e.Pending == nil {
			e.Pending = map[string]struct{}{}
		}
		e.Pending[status.Plugin()] = struct{}{}
	}
}

// RefuseAll notes that status refused every node before any was looked at.
func (e *FitError) RefuseAll(status *Status) {
	e.PreFilterMessage = status.Message()
	e.note(status)
}

// PluginNames are the plugins that refused, sorted.
func (e *FitError) PluginNames() []string { return slices.Sorted(maps.Keys(e.Plugins)) }

// PendingNames are the plugins that answered Pending, sorted.
func (e *FitError) PendingNames() []string { return slices.Sorted(maps.Keys(e.Pending)) }

func (e *FitError) Error() string {
	message := fmt.Sprintf("0/%d nodes are available:", e.NumAllNodes)
	if e.PreFilterMessage != "" {
		return message + " " + e.PreFilterMessage + "." + e.after()
	}
	counted := make([]string, 0, len(e.Reasons))
	for reason, count := range e.Reasons {
		counted = append(counted, fmt.Sprintf("%d %s", count, reason))
	}
	slices.Sort(counted)
	if len(counted) > 0 {
		message += " " + strings.Join(counted, ", ") + "."
	}
	return message + e.after()
}

func (e *FitError) after() string {
	if e.PostFilterMessage == "" {
		return ""
	}
	return " " + e.PostFilterMessage
}
