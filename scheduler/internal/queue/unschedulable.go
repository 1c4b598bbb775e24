package queue

import (
	"container/list"
	"slices"
	"strings"
	"time"

	"kctl/scheduler/framework"
)

// unschedulableGroup are the unschedulable or gated pods of a profile that the same
// plugins rejected: most events concern none of these plugins, and then no pod is
// looked at.
type unschedulableGroup struct {
	key     string
	profile string
	plugins []string   // none stands for pods that any event may help
	pods    *list.List // of *item, the longest waiting first
}

// concerns reports whether event is of a kind that one of the group's plugins waits for.
func (q *Queue) concerns(w *unschedulableGroup, event framework.ClusterEvent) bool {
	isMeant := func(i framework.ClusterEventWithHint) bool { return i.IsAbout(event) }
	return len(w.plugins) == 0 || slices.ContainsFunc(w.plugins, func(plugin string) bool { return q.registered(w.profile, plugin, isMeant) })
}

// join adds a pod to the group of its plugins, as the last.
func (q *Queue) join(groups map[string]*unschedulableGroup, it *item) {
	it.unschedulableSince = q.options.Clock.Now()
	key := it.profile.SchedulerName + "\x00" + strings.Join(it.plugins, "\x00")
	if it.waits = groups[key]; it.waits == nil {
		it.waits = &unschedulableGroup{key: key, profile: it.profile.SchedulerName, plugins: it.plugins, pods: list.New()}
		groups[key] = it.waits
	}
	it.element = it.waits.pods.PushBack(it)
	if it.waits.pods.Len() == 1 { // else others are flushed before it
		signal(q.rearm)
	}
}

func (q *Queue) leave(groups map[string]*unschedulableGroup, it *item) {
	it.waits.pods.Remove(it.element)
	if it.waits.pods.Len() == 0 {
		delete(groups, it.waits.key)
	}
	it.element, it.waits = nil, nil
}

// due returns the pods of groups that have waited for long without an event, and says when
// the next are due.
func (q *Queue) due(groups map[string]*unschedulableGroup, now time.Time, soonest func(time.Time)) []*item {
	var all []*item
	for _, w := range groups {
		for e := w.pods.Front(); e != nil; e = e.Next() {
			it := e.Value.(*item)
			if at := it.unschedulableSince.Add(q.options.FlushAfter); at.After(now) {
				soonest(at)
				break
			}
			all = append(all, it)
		}
	}
	return all
}

// count is the number of pods in groups.
func count(groups map[string]*unschedulableGroup) int {
	pods := 0
	for _, w := range groups {
		pods += w.pods.Len()
	}
	return pods
}

// Pending counts the pods in each part of the queue.
func (q *Queue) Pending() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return map[string]int{
		partNames[inActive]:        q.activeQ.Len(),
		partNames[inBackoff]:       q.backoffQ.Len() + q.errorBackoffQ.Len(),
		partNames[inUnschedulable]: count(q.unschedulablePods),
		partNames[inGated]:         count(q.gatedPods),
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
