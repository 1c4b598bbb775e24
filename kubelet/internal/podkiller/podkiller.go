package podkiller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
)

// The reasons of pods that the node ends, or refuses, for lack of something.
const (
	// Evicted is of pods that used what the node is short of.
	Evicted = "Evicted"
	// Preempting is of pods that made room for a critical one.
	Preempting = "Preempting"
)

// Workers end pods.
type Workers interface {
	Update(podworker.Update)
}

// Mirrors knows the mirror pods of static pods.
type Mirrors interface {
	Of(pod *core.Pod) *core.Pod
}

// Killer ends pods.
type Killer struct {
	workers Workers
	mirrors Mirrors
	clock   clock.PassiveClock
}

// New returns a Killer.
func New(workers Workers, mirrors Mirrors, clock clock.PassiveClock) *Killer {
	return &Killer{workers: workers, mirrors: mirrors, clock: clock}
}

// Termination is how and why the node ends a pod that was not deleted.
type Termination struct {
	Reason, Message string
	// Disrupted is the message of the condition DisruptionTarget; "" for none, for a
	// pod that would end like this on any node.
	Disrupted string
	// KeepsSuccess says that a pod that has finished its work by then has not failed.
	KeepsSuccess bool
	// AsItEnds says that the pod has failed only if its containers fail when asked to
	// end: those that end successfully within their grace period have done what they
	// could.
	AsItEnds bool

	Grace *int64 // seconds; nil for the pod's own
	Done  chan<- struct{}
}

// Terminate ends a pod as Failed, for good: its controller makes another one, and the
// scheduler finds a better place for that.
func (k *Killer) Terminate(pod *core.Pod, end Termination) {
	k.Kill(pod, podworker.KillOptions{
		GracePeriod: end.Grace,
		Done:        end.Done,
		Status:      func(status *core.PodStatus) { k.explain(pod, end, status) },
	})
}

// Kill ends a pod as the options say.
func (k *Killer) Kill(pod *core.Pod, options podworker.KillOptions) {
	k.workers.Update(podworker.Update{Type: podworker.Kill, Pod: pod, MirrorPod: k.mirrors.Of(pod), Start: k.clock.Now(), Kill: &options})
}

// explain is called for each status that the pod has on its way to its end.
func (k *Killer) explain(pod *core.Pod, end Termination, current *core.PodStatus) {
	if end.KeepsSuccess && current.Phase == corev1.PodSucceeded {
		return
	}
	if end.AsItEnds && !core.Ended(current.Phase) {
		return
	}
	if !end.AsItEnds || current.Phase == corev1.PodFailed {
		current.Phase, current.Reason, current.Message = corev1.PodFailed, end.Reason, end.Message
	}
	told := slices.ContainsFunc(current.Conditions, func(c core.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
	if end.Disrupted == "" || told {
		return
	}
	current.Conditions = slices.Insert(current.Conditions, 0, core.PodCondition{
		Type: corev1.DisruptionTarget, ObservedGeneration: pod.Generation, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonTerminationByKubelet, Message: end.Disrupted, LastTransitionTime: metav1.NewTime(k.clock.Now()),
	})
}
