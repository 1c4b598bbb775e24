package kubelet

import (
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/shutdown"
	"kctl/kubelet/internal/status"
	"kctl/kubelet/internal/volume"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
)

// HandlePodAdditions handles new pods, the oldest first: admitted ones go to
// their workers, the others fail.
func (k *Kubelet) HandlePodAdditions(pods []*core.Pod) {
	start := k.clock.Now()
	active := &activePods{kubelet: k}
	for _, pod := range byCreation(pods) {
		k.pods.Set(pod)
		if core.IsMirror(pod) {
			k.handleMirror(pod)
			continue
		}
		k.addPod(pod, active, start)
		active.update(pod)
	}
}

func (k *Kubelet) addPod(pod *core.Pod, active *activePods, start time.Time) {
	recorder := k.statuses.Recorder(pod)
	recorder.Stamp(relay.KubeletSeen, start)
	if !status.Ending(pod) && !k.workers.TerminationRequested(pod.UID) {
		if decision := k.admit(pod, active); !decision.Admitted {
			k.reject(pod, decision)
			return
		}
		k.allocations.Admit(pod)
	}
	recorder.Stamp(relay.KubeletAdmitted, k.clock.Now())
	k.update(podworker.Create, pod, start)
}

func byCreation(pods []*core.Pod) []*core.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *core.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}

func (k *Kubelet) update(t podworker.UpdateType, pod *core.Pod, start time.Time) {
	k.workers.Update(podworker.Update{Type: t, Pod: pod, MirrorPod: k.mirrors.Of(pod), Start: start})
}

// admit decides, given all pods that are on the node and have not ended.
func (k *Kubelet) admit(pod *core.Pod, active *activePods) admit.Decision {
	if k.shutdown.ShuttingDown() {
		return admit.Refuse(shutdown.RejectedReason, "%s", shutdown.RejectedMessage)
	}
	if short := k.eviction.Admit(pod); short != "" {
		return admit.Refuse(evicted, "%s", short)
	}
	for _, decision := range []admit.Decision{
		admit.Sysctls(pod, k.config.AllowedUnsafeSysctls), admit.AppArmor(pod, k.appArmor), admit.SupplementalGroups(pod, k.health.Reported()),
	} {
		if !decision.Admitted {
			return decision
		}
	}
	others := active.beside(pod)
	pod = k.allocations.Allocated(pod) // an earlier kubelet may have refused a resize
	check := func() admit.Decision {
		return admit.Pod(pod, others, k.node.Node(), podmanager.IsStatic(pod), admit.Features, volume.Check, k.health.CheckImageVolumes)
	}
	decision := check()
	if (decision.Reason == admit.ReasonNodeAffinity || decision.Reason == admit.ReasonTaint) && active.rereadNode() {
		decision = check()
	}
	if decision.InsufficientResource != "" && podmanager.IsCritical(pod) {
		return k.preemptFor(pod, others, decision)
	}
	return decision
}

// active says that the pod holds resources of the node.
func (k *Kubelet) active(pod *core.Pod) bool {
	if k.workers.Phase(pod.UID) >= podworker.Terminated {
		return false
	}
	if k.workers.CouldHaveRunningContainers(pod.UID) {
		return !k.endedBefore(pod)
	}
	current, ok := k.statuses.Get(pod.UID)
	return !core.Ended(pod.Status.Phase) && !(ok && core.Ended(current.Phase))
}

// endedBefore says that the pod ended under an earlier kubelet: its worker has only begun, and only
// cleans up after it.
func (k *Kubelet) endedBefore(pod *core.Pod) bool {
	if !core.Ended(pod.Status.Phase) {
		return false
	}
	known, err := k.cache.Get(pod.UID)
	return err == nil && !known.RunningPod("").Lasts()
}

// otherPods are the pods that hold resources of the node beside this one.
func (k *Kubelet) otherPods(pod *core.Pod) []*core.Pod {
	return slices.DeleteFunc(k.pods.Pods(), func(other *core.Pod) bool { return other.UID == pod.UID || !k.active(other) })
}

// reject ends a pod before it began.
func (k *Kubelet) reject(pod *core.Pod, decision admit.Decision) {
	k.logger.Info("pod rejected", daemon.PodFields(pod),
		zap.String("reason", decision.Reason), zap.String("message", decision.Message))
	k.metrics.Rejections.WithLabelValues(decision.Reason).Inc()
	k.events.Eventf(pod, corev1.EventTypeWarning, decision.Reason, "%s", decision.Message)
	failed := *pod.Status.DeepCopy()
	failed.Phase, failed.Reason, failed.Message = corev1.PodFailed, decision.Reason, "Pod was rejected: "+decision.Message
	failed.ObservedGeneration = pod.Generation
	if failed.StartTime == nil {
		failed.StartTime = new(metav1.NewTime(k.clock.Now()).Rfc3339Copy())
	}
	if status.Begun(&pod.Status) { // by an earlier kubelet, whose sandbox may be there
		k.terminatePod(pod, termination{reason: failed.Reason, message: failed.Message})
		return
	}
	k.allocations.Forget(pod.UID) // an earlier kubelet may have admitted it
	k.statuses.Set(pod, failed)
}

// HandlePodUpdates handles pods whose desired state has changed, including
// deletions.
func (k *Kubelet) HandlePodUpdates(pods []*core.Pod) {
	start := k.clock.Now()
	for _, pod := range pods {
		k.pods.Set(pod)
		switch {
		case core.IsMirror(pod):
			k.handleMirror(pod)
		case k.workers.Finished(pod.UID):
			k.statuses.Finish(pod)
		case k.workers.Phase(pod.UID) == podworker.Unknown && !status.Ending(pod):
			// It was rejected, and stays so.
		default:
			k.update(podworker.Change, pod, start)
		}
		k.reconcile(pod) // its status may have been changed with the rest
	}
}

// HandlePodRemoves handles pods that are gone from their source.
func (k *Kubelet) HandlePodRemoves(pods []*core.Pod) {
	defer k.collector.CollectSoon()
	for _, pod := range pods {
		k.pods.Remove(pod)
		if core.IsMirror(pod) {
			k.handleMirror(pod)
			continue
		}
		if k.workers.Phase(pod.UID) == podworker.Unknown {
			continue
		}
		k.kill(pod, podworker.KillOptions{Removed: true})
	}
}

// HandlePodReconcile handles pods whose status in the API has changed: either
// it is what we sent, or somebody else wrote it.
func (k *Kubelet) HandlePodReconcile(pods []*core.Pod) {
	for _, pod := range pods {
		k.pods.Set(pod)
		k.reconcile(pod)
		if len(pod.Spec.ReadinessGates) > 0 && !core.IsMirror(pod) {
			k.workers.Resync(pod.UID) // whether it is ready depends on what others write
		}
	}
}

// reconcile compares the pod's status with the API's; for a mirror, its static
// pod's status.
func (k *Kubelet) reconcile(pod *core.Pod) {
	if core.IsMirror(pod) {
		pod = k.pods.PodOf(pod)
	}
	if pod != nil {
		k.statuses.Reconcile(pod)
	}
}

// HandlePodSyncs makes the pods' workers look at them again.
func (k *Kubelet) HandlePodSyncs(uids ...types.UID) { k.workers.Resync(uids...) }

// HandleDue makes the workers of the pods whose time has come look at them.
func (k *Kubelet) HandleDue() { k.workers.SyncDue() }

// handleMirror looks at the static pod whose mirror pod changed, came or went.
func (k *Kubelet) handleMirror(mirror *core.Pod) {
	static := k.pods.PodOf(mirror)
	if static == nil {
		return // housekeeping deletes it
	}
	k.statuses.Reconcile(static)
	if k.workers.Phase(static.UID) != podworker.Unknown {
		k.update(podworker.Sync, static, time.Time{})
	}
}
