package kubelet

import (
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/lifecycle"
	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// The messages of a pod that ends to make room for a critical one.
const (
	preempting       = "Preempting"
	preempted        = "Preempted in order to admit critical pod"
	preemptedBecause = "Pod was preempted by Kubelet to accommodate a critical pod."
)

// preemptFor ends pods for a critical pod that was rejected for lack of
// resources, and admits it; if that is not possible, the rejection stays. The
// others get their grace periods. The critical pod waits for them
// (lifecycle.WaitForVictims); the sync loop does not, because it has other pods to
// handle.
func (k *Kubelet) preemptFor(pod *core.Pod, others []*core.Pod, refused admit.Decision) admit.Decision {
	leaving := func(other *core.Pod) bool { return k.workers.TerminationRequested(other.UID) }
	victims := admit.Victims(pod, others, k.allocatable(), leaving)
	if len(victims) == 0 {
		return refused
	}
	ends := make([]lifecycle.Victim, 0, len(victims))
	for _, victim := range victims {
		// The granted pod may be a different object from the desired one.
		if desired, ok := k.pods.ByUID(victim.UID); ok {
			victim = desired
		}
		done := make(chan struct{})
		k.preempt(victim, pod, refused.InsufficientResource, leaving(victim), done)
		ends = append(ends, lifecycle.Victim{Pod: victim, Done: done, Until: k.clock.Now().Add(preemptionTimeout(victim))})
	}
	k.lifecycle.WaitForVictims(pod.UID, ends)
	return admit.Decision{Admitted: true}
}

// preempt asks a pod to end. One that was ending already keeps its grace period and
// reason.
func (k *Kubelet) preempt(pod, critical *core.Pod, resource corev1.ResourceName, ending bool, done chan<- struct{}) {
	if ending {
		k.kill(pod, podworker.KillOptions{Done: done})
		return
	}
	k.logger.Warn("pod preempted", daemon.PodFields(pod),
		zap.String("for", critical.Namespace+"/"+critical.Name), zap.String("resource", string(resource)))
	k.events.Eventf(pod, corev1.EventTypeWarning, preempting, "%s", preempted)
	k.metrics.Preemptions.WithLabelValues(string(resource)).Inc()
	k.terminatePod(pod, termination{reason: preempting, message: preempted, disrupted: preemptedBecause, asItEnds: true, done: done})
}

// preemptionTimeout is how long a critical pod waits for another's end: one and a half
// times that pod's grace period, and at least as long as a runtime may take to kill
// it.
func preemptionTimeout(pod *core.Pod) time.Duration {
	grace := core.Seconds(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0))
	return max(grace+grace/2, 10*time.Second)
}
