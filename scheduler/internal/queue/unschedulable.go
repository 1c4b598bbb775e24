package queue

import (
	"container/list"
	"slices"

	"kctl/scheduler/framework"
)

// unschedulableGroup are the unschedulable pods of a profile that the same plugins
// rejected: most events concern none of these plugins, and then no pod is looked
// at.
type unschedulableGroup struct {
	key     string
	profile string
	plugins []string   // none stands for pods that any event may help
	pods    *list.List // of *item, the longest waiting first
}

// concerns reports whether event is of a kind that one of the plugins waits for.
func (w *unschedulableGroup) concerns(hintMap map[string]map[string][]framework.ClusterEventWithHint, event framework.ClusterEvent) bool {
	if len(w.plugins) == 0 {
		return true
	}
	for _, plugin := range w.plugins {
		registered, known := hintMap[w.profile][plugin]
		if !known || registered == nil {
			return true
		}
		if slices.ContainsFunc(registered, func(i framework.ClusterEventWithHint) bool { return i.IsAbout(event) }) {
			return true
		}
	}
	return false
}

// Pending counts the pods in each part of the queue.
func (q *Queue) Pending() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	unschedulable := 0
	for _, w := range q.unschedulablePods {
		unschedulable += w.pods.Len()
	}
	return map[string]int{
		partNames[inActive]:        q.activeQ.Len(),
		partNames[inBackoff]:       q.backoffQ.Len() + q.errorBackoffQ.Len(),
		partNames[inUnschedulable]: unschedulable,
		partNames[inGated]:         q.gated,
	}
}

// Busy reports whether pods wait to be attempted.
func (q *Queue) Busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.activeQ.Len() > 0
}

// Unschedulable counts the unschedulable pods for each plugin that refused them.
func (q *Queue) Unschedulable(each func(profile, plugin string, pods int)) {
	type refusal struct{ profile, plugin string }
	counts := map[refusal]int{}
	q.mu.Lock()
	for _, w := range q.unschedulablePods {
		for _, plugin := range w.plugins {
			counts[refusal{w.profile, plugin}] += w.pods.Len()
		}
	}
	q.mu.Unlock()
	for of, pods := range counts {
		each(of.profile, of.plugin, pods)
	}
}
