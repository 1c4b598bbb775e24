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

// judgeUnscheduled looks for pods that their scheduler has not even looked at: one
// that finds no place for a pod says so in a condition.
func (s *Server) judgeUnscheduled(pods []core.Pod) []Check {
	waiting := map[string][]string{}
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !considered(pod) && s.Now().Sub(pod.CreationTimestamp.Time) > unheard {
			scheduler := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
			waiting[scheduler] = append(waiting[scheduler], pod.Namespace+"/"+pod.Name)
		}
	}
	var checks []Check
	for _, scheduler := range slices.Sorted(maps.Keys(waiting)) {
		advice := "run a scheduler of that name, or make the pods without schedulerName"
		if scheduler == corev1.DefaultSchedulerName {
			advice = "see that the scheduler runs (" + s.serviceHint("scheduler") + ")"
		}
		checks = append(checks, fail("scheduler", advice, "%s does not take up: %s", scheduler, abbreviate(waiting[scheduler])))
	}
	return checks
}

// considered tells whether a scheduler, or the API server for gates, has said what
// keeps the pod.
func considered(pod *core.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c core.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// unheard is how long a pod or a deployment may wait to be taken up.
const unheard = 10 * time.Second
