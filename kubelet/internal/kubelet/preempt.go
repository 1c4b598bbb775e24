package kubelet

import (
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// What a pod is told that ends to make room for a critical one.
const (
	preempting       = "Preempting"
	preempted        = "Preempted in order to admit critical pod"
	preemptedBecause = "Pod was preempted by Kubelet to accommodate a critical pod."
)

// makeRoom ends pods for a critical one that was refused for want of room, and
// takes that one; it stays refused where no room can be made. It does not wait
// for the others to end, which they do at once: the sync loop has other pods to
// see to meanwhile, and the critical one takes time to start.
func (k *Kubelet) makeRoom(pod *core.Pod, others []*core.Pod, refused admit.Decision) admit.Decision {
	leaving := func(other *core.Pod) bool { return k.workers.TerminationRequested(other.UID) }
	victims := admit.Victims(pod, others, k.node.Node().Status.Allocatable, leaving)
	if len(victims) == 0 {
		return refused
	}
	for _, victim := range victims {
		// What is granted may be another object than what is desired.
		if desired, ok := k.pods.ByUID(victim.UID); ok {
			k.preempt(desired, pod, refused.NoRoom, leaving(victim))
		}
	}
	return admit.Decision{Admitted: true}
}

// preempt ends a pod at once. One that was ending already does so for the
// reason that it had.
func (k *Kubelet) preempt(pod, critical *core.Pod, resource corev1.ResourceName, ending bool) {
	now := int64(0)
	if ending {
		k.kill(pod, podworker.KillOptions{GracePeriod: &now})
		return
	}
	k.logger.Warn("pod preempted", daemon.PodFields(pod),
		zap.String("for", critical.Namespace+"/"+critical.Name), zap.String("resource", string(resource)))
	k.events.Eventf(pod, corev1.EventTypeWarning, preempting, "%s", preempted)
	k.metrics.preemptions.WithLabelValues(string(resource)).Inc()
	k.endPod(pod, nodeEnd{reason: preempting, message: preempted, disrupted: preemptedBecause, grace: &now})
}
