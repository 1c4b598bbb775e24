package synchandler

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/metrics"
	"kctl/kubelet/internal/mirror"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
)

// Events writes events about pods.
type Events interface {
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
}

// Options are the rooms that learn of pods.
type Options struct {
	Admission *Admission
	Cleaner   *Cleaner
	Killer    *podkiller.Killer

	Pods        *podmanager.Manager
	Workers     *podworker.Workers
	Statuses    *status.Manager
	Mirrors     *mirror.Manager
	Allocations *allocation.Manager

	Events  Events
	Metrics *metrics.Metrics
	Clock   clock.PassiveClock
	Logger  *zap.Logger
}

// Handler implements syncloop.Handler.
type Handler struct{ o Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{o} }

// HandlePodAdditions handles new pods, the oldest first: admitted ones go to
// their workers, the others fail.
func (h *Handler) HandlePodAdditions(pods []*core.Pod) {
	start := h.o.Clock.Now()
	round := h.o.Admission.begin()
	for _, pod := range byCreation(pods) {
		h.o.Pods.Set(pod)
		if core.IsMirror(pod) {
			h.handleMirror(pod)
			continue
		}
		h.addPod(pod, round, start)
		round.update(pod)
	}
}

func (h *Handler) addPod(pod *core.Pod, round *round, start time.Time) {
	stamps := h.o.Statuses.Stamps(pod)
	stamps.Stamp(relay.KubeletSeen, start)
	if !status.Ending(pod) && !h.o.Workers.TerminationRequested(pod.UID) {
		if decision := round.admit(pod); !decision.Admitted {
			h.reject(pod, decision)
			return
		}
		h.o.Allocations.Admit(pod)
	}
	stamps.Stamp(relay.KubeletAdmitted, h.o.Clock.Now())
	h.update(podworker.Create, pod, start)
}

func byCreation(pods []*core.Pod) []*core.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *core.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}

func (h *Handler) update(t podworker.UpdateType, pod *core.Pod, start time.Time) {
	h.o.Workers.Update(podworker.Update{Type: t, Pod: pod, MirrorPod: h.o.Mirrors.Of(pod), Start: start})
}

// reject ends a pod before it began.
func (h *Handler) reject(pod *core.Pod, decision admit.Decision) {
	h.o.Logger.Info("pod rejected", daemon.PodFields(pod),
		zap.String("reason", decision.Reason), zap.String("message", decision.Message))
	h.o.Metrics.Rejections.WithLabelValues(decision.Reason).Inc()
	h.o.Events.Eventf(pod, corev1.EventTypeWarning, decision.Reason, "%s", decision.Message)
	failed := *pod.Status.DeepCopy()
	failed.Phase, failed.Reason, failed.Message = corev1.PodFailed, decision.Reason, "Pod was rejected: "+decision.Message
	failed.ObservedGeneration = pod.Generation
	if failed.StartTime == nil {
		failed.StartTime = new(metav1.NewTime(h.o.Clock.Now()).Rfc3339Copy())
	}
	if status.Begun(&pod.Status) { // by an earlier kubelet, whose sandbox may be there
		h.o.Killer.Terminate(pod, podkiller.Termination{Reason: failed.Reason, Message: failed.Message})
		return
	}
	h.o.Allocations.Forget(pod.UID) // an earlier kubelet may have admitted it
	h.o.Statuses.Set(pod, failed)
}

// HandlePodUpdates handles pods whose desired state has changed, including
// deletions.
func (h *Handler) HandlePodUpdates(pods []*core.Pod) {
	start := h.o.Clock.Now()
	for _, pod := range pods {
		if before, known := h.o.Pods.ByUID(pod.UID); known && !core.IsMirror(pod) {
			h.o.Metrics.ResizesAsked(before, pod)
		}
		h.o.Pods.Set(pod)
		switch {
		case core.IsMirror(pod):
			h.handleMirror(pod)
		case h.o.Workers.Finished(pod.UID):
			h.o.Statuses.Finish(pod)
		case h.o.Workers.Phase(pod.UID) == podworker.Unknown && !status.Ending(pod):
			// It was rejected, and stays so.
		default:
			h.update(podworker.Change, pod, start)
		}
		h.reconcile(pod) // its status may have been changed with the rest
	}
}

// HandlePodRemoves handles pods that are gone from their source.
func (h *Handler) HandlePodRemoves(pods []*core.Pod) {
	defer h.o.Cleaner.collectSoon()
	for _, pod := range pods {
		h.o.Pods.Remove(pod)
		if core.IsMirror(pod) {
			h.handleMirror(pod)
			continue
		}
		if h.o.Workers.Phase(pod.UID) == podworker.Unknown {
			continue
		}
		h.o.Killer.Kill(pod, podworker.KillOptions{Removed: true})
	}
}

// HandlePodReconcile handles pods whose status in the API has changed: either
// it is what we sent, or somebody else wrote it.
func (h *Handler) HandlePodReconcile(pods []*core.Pod) {
	for _, pod := range pods {
		h.o.Pods.Set(pod)
		h.reconcile(pod)
		if len(pod.Spec.ReadinessGates) > 0 && !core.IsMirror(pod) {
			h.o.Workers.Resync(pod.UID) // whether it is ready depends on what others write
		}
	}
}

// reconcile compares the pod's status with the API's; for a mirror, its static
// pod's status.
func (h *Handler) reconcile(pod *core.Pod) {
	if core.IsMirror(pod) {
		pod = h.o.Pods.PodOf(pod)
	}
	if pod != nil {
		h.o.Statuses.Reconcile(pod)
	}
}

// HandlePodSyncs makes the pods' workers look at them again.
func (h *Handler) HandlePodSyncs(uids ...types.UID) { h.o.Workers.Resync(uids...) }

// HandleDue makes the workers of the pods whose time has come look at them.
func (h *Handler) HandleDue() { h.o.Workers.SyncDue() }

// HandlePodCleanups cleans up what is left of pods that are gone.
func (h *Handler) HandlePodCleanups(ctx context.Context) { h.o.Cleaner.Begin(ctx) }

// handleMirror looks at the static pod whose mirror pod changed, came or went.
func (h *Handler) handleMirror(mirror *core.Pod) {
	static := h.o.Pods.PodOf(mirror)
	if static == nil {
		return // housekeeping deletes it
	}
	h.o.Statuses.Reconcile(static)
	if h.o.Workers.Phase(static.UID) != podworker.Unknown {
		h.update(podworker.Sync, static, time.Time{})
	}
}
