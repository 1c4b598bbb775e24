package doctor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// unscheduled selects the pods that a scheduler has yet to place.
const unscheduled = "spec.nodeName=,status.phase=Pending"

// scheduledPods are pods with no more than what tells when each was scheduled.
type scheduledPods struct {
	Items []struct {
		Metadata struct{ ManagedFields []managedFields }
		Spec     struct{ SchedulerName string }
		Status   struct{ Conditions []core.PodCondition }
	}
}

// managedFields tell whether somebody has set the node's name.
type managedFields struct {
	FieldsV1 struct {
		Spec struct {
			NodeName *struct{} `json:"f:nodeName"`
		} `json:"f:spec"`
	}
}

// latest is when each scheduler last placed a pod, or said why it can't. Gates are the
// API server's, and pods that were made with a node no scheduler's: who made them has set
// the node's name, which a Binding sets in nobody's name.
func (l scheduledPods) latest() map[string]time.Time {
	latest := map[string]time.Time{}
	for _, pod := range l.Items {
		if slices.ContainsFunc(pod.Metadata.ManagedFields, func(m managedFields) bool { return m.FieldsV1.Spec.NodeName != nil }) {
			continue
		}
		for _, c := range pod.Status.Conditions {
			scheduler := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
			if c.Type == corev1.PodScheduled && c.Reason != corev1.PodReasonSchedulingGated && c.LastTransitionTime.After(latest[scheduler]) {
				latest[scheduler] = c.LastTransitionTime.Time
			}
		}
	}
	return latest
}

// judgeUnscheduled looks for pods that their scheduler has not even looked at: one
// that finds no place for a pod says so in a condition. latest is asked for if there are
// any: a scheduler that places others meanwhile has a backlog, and is well.
func (s *Server) judgeUnscheduled(pods []core.Pod, latest func() map[string]time.Time) []Check {
	waiting := map[string][]string{}
	for i := range pods {
		pod := &pods[i]
		if NoScheduler(pod, s.serverNow()) {
			scheduler := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
			waiting[scheduler] = append(waiting[scheduler], pod.Namespace+"/"+pod.Name)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	active := latest()
	var checks []Check
	for _, scheduler := range slices.Sorted(maps.Keys(waiting)) {
		names := waiting[scheduler]
		if ago := s.serverNow().Sub(active[scheduler]); ago <= Patience {
			checks = append(checks, warn("scheduler",
				"wait; if the backlog does not shrink, check its metrics and log for what takes so long (mainly extenders and webhooks)",
				"%s has a backlog of %d pods that have waited longer than %s, and placed another one %s ago",
				scheduler, len(names), Patience, max(ago, 0).Round(time.Second)))
			continue
		}
		judge, advice := warn, "run a scheduler of that name (some keep pods in queues and say nothing), or make the pods without schedulerName"
		if scheduler == corev1.DefaultSchedulerName {
			judge, advice = fail, "see that the scheduler runs ("+s.serviceHint("scheduler")+")"
		}
		checks = append(checks, judge("scheduler", advice, "%s does not take up: %s", scheduler, abbreviate(names)))
	}
	return checks
}
