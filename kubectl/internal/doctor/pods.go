package doctor

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// unscheduled selects the pods that a scheduler has yet to place.
const unscheduled = "spec.nodeName=,status.phase=Pending"

// judgeUnscheduled looks for pods that their scheduler has not even looked at: one
// that finds no place for a pod says so in a condition.
func (s *Server) judgeUnscheduled(pods []core.Pod) []Check {
	waiting := map[string][]string{}
	for i := range pods {
		pod := &pods[i]
		if NoScheduler(pod, s.serverNow()) {
			scheduler := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
			waiting[scheduler] = append(waiting[scheduler], pod.Namespace+"/"+pod.Name)
		}
	}
	var checks []Check
	for _, scheduler := range slices.Sorted(maps.Keys(waiting)) {
		judge, advice := warn, "run a scheduler of that name (some keep pods in queues and say nothing), or make the pods without schedulerName"
		if scheduler == corev1.DefaultSchedulerName {
			judge, advice = fail, "see that the scheduler runs ("+s.serviceHint("scheduler")+")"
		}
		checks = append(checks, judge("scheduler", advice, "%s does not take up: %s", scheduler, abbreviate(waiting[scheduler])))
	}
	return checks
}
