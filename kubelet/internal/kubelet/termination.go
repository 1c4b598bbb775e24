package kubelet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
)

// termination is how and why the node ends a pod that was not deleted.
type termination struct {
	reason, message string
	// disrupted is the message of the condition DisruptionTarget; "" for none, for a
	// pod that would end like this on any node.
	disrupted string
	// keepsSuccess says that a pod that has finished its work by then has not failed.
	keepsSuccess bool
	// asItEnds says that the pod has failed only if its containers fail when asked to
	// end: those that end successfully within their grace period have done what they
	// could.
	asItEnds bool

	grace *int64 // seconds; nil for the pod's own
	done  chan<- struct{}
}

// terminatePod ends a pod as Failed, for good: its controller makes another one, and the
// scheduler finds a better place for that.
func (k *Kubelet) terminatePod(pod *core.Pod, end termination) {
	k.kill(pod, podworker.KillOptions{
		GracePeriod: end.grace, Done: end.done,
		Status: func(status *core.PodStatus) { k.explain(pod, end, status) },
	})
}

func (k *Kubelet) kill(pod *core.Pod, options podworker.KillOptions) {
	k.workers.Update(podworker.Update{Type: podworker.Kill, Pod: pod, MirrorPod: k.mirrors.Of(pod), Start: k.clock.Now(), Kill: &options})
}

// explain is called for each status that the pod has on its way to its end.
func (k *Kubelet) explain(pod *core.Pod, end termination, current *core.PodStatus) {
	if end.keepsSuccess && current.Phase == corev1.PodSucceeded {
		return
	}
	if end.asItEnds && !core.Ended(current.Phase) {
		return
	}
	if !end.asItEnds || current.Phase == corev1.PodFailed {
		current.Phase, current.Reason, current.Message = corev1.PodFailed, end.reason, end.message
	}
	told := slices.ContainsFunc(current.Conditions, func(c core.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
	if end.disrupted == "" || told {
		return
	}
	current.Conditions = slices.Insert(current.Conditions, 0, core.PodCondition{
		Type: corev1.DisruptionTarget, ObservedGeneration: pod.Generation, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonTerminationByKubelet, Message: end.disrupted, LastTransitionTime: metav1.NewTime(k.clock.Now()),
	})
}
