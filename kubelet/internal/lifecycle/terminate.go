package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/loglinks"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
	"kctl/proto/tracing"
)

// errStillRunning says that a container appeared or stayed although all were ended.
var errStillRunning = errors.New("containers of the pod are still running")

// SyncTerminatingPod ends all containers of the pod, and learns how they ended.
func (l *Lifecycle) SyncTerminatingPod(ctx context.Context, job podworker.Job) (err error) {
	pod := job.Pod
	ctx, span := l.tracePod(ctx, "syncTerminatingPod", pod)
	defer func() { tracing.End(span, err) }()
	found, err := l.State.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
	if err != nil {
		return l.unknown(ctx, pod, err)
	}
	if l.endedBefore(pod, found) {
		l.Probes.RemovePod(pod.UID)
		return nil
	}
	l.Statuses.StampEnd(pod, relay.KubeletStopping)
	l.setStatus(job, found, false)
	l.Probes.StopLivenessAndStartup(pod.UID)
	grace := job.GracePeriod
	l.Logger.Info("pod is terminated", daemon.PodFields(pod), zap.Int64("grace", grace))
	if err := l.Runtime.KillPod(ctx, pod, found.RunningPod(l.State.Name()), &grace); err != nil {
		if ctx.Err() == nil { // and not because less grace is given now
			l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: %v", err)
		}
		return fmt.Errorf("end containers: %w", err)
	}
	l.Probes.RemovePod(pod.UID)
	l.PLEG.RelistSoon()
	if found, err = l.State.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace); err != nil {
		return fmt.Errorf("how the pod ended is not known: %w", err)
	}
	l.Cache.Set(pod.UID, found, nil, found.At)
	if len(found.Running()) > 0 {
		return errStillRunning
	}
	l.Statuses.StampEnd(pod, relay.KubeletStopped)
	l.setStatus(job, found, true)
	return nil
}

// endedBefore says that the pod had already ended when we first saw it: there
// is nothing to end and nothing to add to its status.
func (l *Lifecycle) endedBefore(pod *core.Pod, found *runtimestate.PodStatus) bool {
	_, ours := l.Statuses.Get(pod.UID)
	return !ours && core.Ended(pod.Status.Phase) && len(found.Running()) == 0 && found.ReadySandbox() == nil
}

// setStatus reports the pod's final status, as requested with its end.
func (l *Lifecycle) setStatus(job podworker.Job, found *runtimestate.PodStatus, terminal bool) {
	current := l.generate(job.Pod, found, terminal)
	if job.Status != nil {
		job.Status(&current)
	}
	l.Statuses.Set(job.Pod, current)
}

// SyncTerminatingRuntimePod ends a pod that only the runtime knows, and removes
// what it left.
func (l *Lifecycle) SyncTerminatingRuntimePod(ctx context.Context, pod podworker.Orphan) error {
	found, err := l.State.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
	if err != nil {
		return fmt.Errorf("what the runtime has of the pod is not known: %w", err)
	}
	running := found.RunningPod(l.State.Name())
	if len(found.Running()) > 0 {
		l.Logger.Info("ending a pod that no source has", daemon.PodKey(pod.Namespace, pod.Name, pod.UID))
	}
	grace := int64(1)
	if err := l.Runtime.KillPod(ctx, nil, running, &grace); err != nil {
		return fmt.Errorf("end containers: %w", err)
	}
	return l.removeFromRuntime(ctx, pod, running)
}

// removeFromRuntime removes a pod's logs, dead containers and sandboxes. The logs come
// first: nobody writes them any more, and the runtime may refuse to remove the rest for
// a long time.
func (l *Lifecycle) removeFromRuntime(ctx context.Context, pod podworker.Orphan, running *runtimestate.RunningPod) error {
	if err := os.RemoveAll(podfiles.LogDirectory(l.PodLogsDir, pod.Namespace, pod.Name, pod.UID)); err != nil {
		return fmt.Errorf("remove logs: %w", err)
	}
	if err := loglinks.RemovePod(l.PodLogsDir, pod.Namespace, pod.Name); err != nil {
		return err
	}
	if err := l.Runtime.RemovePod(ctx, running); err != nil {
		return fmt.Errorf("remove containers: %w", err)
	}
	l.PLEG.RelistSoon()
	return nil
}

// SyncTerminatedPod releases what the pod held on the node. Nothing is left of a pod that is being
// deleted or is gone from its source for good; if it just ended, its dead containers and their logs stay for
// people to look at.
func (l *Lifecycle) SyncTerminatedPod(ctx context.Context, job podworker.Job) (err error) {
	pod := job.Pod
	ctx, span := l.tracePod(ctx, "syncTerminatedPod", pod)
	defer func() { tracing.End(span, err) }()
	if err := l.Volumes.Unmount(ctx, pod.UID); err != nil {
		l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedUnMount", "%v", err)
		return err
	}
	if err := l.release(ctx, job); err != nil {
		l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: %v", err)
		return err
	}
	l.records.forget(pod.UID)
	l.Allocations.Forget(pod.UID)
	l.Statuses.Finish(pod)
	if job.Removed {
		l.Mirrors.Retire(pod)
	}
	return nil
}

// release releases what the pod held besides its volumes.
func (l *Lifecycle) release(ctx context.Context, job podworker.Job) error {
	pod := job.Pod
	if err := l.Cgroups.Destroy(pod.UID, cgroup.QOSClass(pod)); err != nil {
		return err
	}
	if err := l.UserIDs.Release(pod.UID); err != nil {
		return err
	}
	desired, ok := l.Pods.ByUID(pod.UID)
	switch {
	case ok && job.Removed && desired.Name == pod.Name && desired.Namespace == pod.Namespace && alwaysRestarts(&desired.Spec):
		return nil // its manifest is back: its containers are restarted, and count that
	case !ok || job.Removed || pod.DeletionTimestamp != nil:
		return l.removePod(ctx, pod)
	}
	return nil
}

// alwaysRestarts tells whether all of a pod's containers run again, however they have ended. One with a
// policy of its own may not, as long as its end is known.
func alwaysRestarts(spec *core.PodSpec) bool {
	return spec.RestartPolicy == corev1.RestartPolicyAlways && !slices.ContainsFunc(spec.Containers, func(c core.Container) bool {
		return core.RestartPolicyOf(spec, &c) != corev1.ContainerRestartPolicyAlways
	})
}

func (l *Lifecycle) removePod(ctx context.Context, pod *core.Pod) error {
	found, err := l.runtimeStatus(ctx, pod)
	if err != nil {
		return err
	}
	running := found.RunningPod(l.State.Name())
	if err := l.removeFromRuntime(ctx, podworker.Orphan{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}, running); err != nil {
		if !l.hasStopped(ctx, pod) {
			return err
		}
		// For a container during whose start a kubelet was killed, containerd 1.6
		// refuses it until containerd is restarted. Housekeeping goes on trying; the
		// object does not wait for that, as upstream's doesn't.
		l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: %v", err)
		l.Logger.Warn("what ended of a pod is not removed yet", daemon.PodFields(pod), zap.Error(err))
	}
	// Not with the next relist: a static pod may come back at once.
	removed := l.Clock.Now()
	l.Cache.Set(pod.UID, &runtimestate.PodStatus{UID: pod.UID, Name: pod.Name, Namespace: pod.Namespace, At: removed}, nil, removed)
	return l.Volumes.RemovePodDir(ctx, pod.UID)
}

// hasStopped says that according to the runtime everything of the pod has ended.
func (l *Lifecycle) hasStopped(ctx context.Context, pod *core.Pod) bool {
	now, err := l.State.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
	return err == nil && now.ReadySandbox() == nil &&
		!slices.ContainsFunc(now.Containers, func(c *runtimestate.ContainerStatus) bool { return c.State != runtimestate.StateExited })
}
