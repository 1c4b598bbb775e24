package kubelet

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
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/tracing"
)

// errStillRunning says that a container appeared or stayed although all were ended.
var errStillRunning = errors.New("containers of the pod still run")

// SyncTerminatingPod ends all containers of the pod, and learns how they ended.
func (k *Kubelet) SyncTerminatingPod(ctx context.Context, job podworker.Job) (err error) {
	pod := job.Pod
	ctx, span := k.tracePod(ctx, "syncTerminatingPod", pod)
	defer func() { tracing.End(span, err) }()
	runtime, err := k.state.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
	if err != nil {
		return fmt.Errorf("what the runtime has of the pod is not known: %w", err)
	}
	if k.endedBefore(pod, runtime) {
		k.probes.RemovePod(pod.UID)
		return nil
	}
	k.setStatus(job, runtime, false)
	k.probes.StopLivenessAndStartup(pod.UID)
	grace := job.GracePeriod
	k.logger.Info("pod is terminated", daemon.PodFields(pod), zap.Int64("grace", grace))
	if err := k.runtime.KillPod(ctx, pod, runtime.RunningPod(k.state.Name()), &grace); err != nil {
		if ctx.Err() == nil { // and not because less grace is given now
			k.events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: %v", err)
		}
		return fmt.Errorf("end containers: %w", err)
	}
	k.probes.RemovePod(pod.UID)
	k.pleg.Poke()
	if runtime, err = k.state.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace); err != nil {
		return fmt.Errorf("how the pod ended is not known: %w", err)
	}
	k.cache.Set(pod.UID, runtime, nil, runtime.At)
	if len(runtime.Running()) > 0 {
		return errStillRunning
	}
	k.setStatus(job, runtime, true)
	return nil
}

// endedBefore says that the pod had already ended when we first saw it: there
// is nothing to end and nothing to add to its status.
func (k *Kubelet) endedBefore(pod *core.Pod, runtime *runtimestate.PodStatus) bool {
	_, ours := k.statuses.Get(pod.UID)
	return !ours && status.Ended(pod.Status.Phase) && len(runtime.Running()) == 0 && runtime.ReadySandbox() == nil
}

// setStatus reports the pod's final status, as requested with its end.
func (k *Kubelet) setStatus(job podworker.Job, runtime *runtimestate.PodStatus, terminal bool) {
	current := k.generate(job.Pod, runtime, terminal)
	for _, change := range job.Status {
		change(&current)
	}
	k.statuses.Set(job.Pod, current)
}

// SyncTerminatingRuntimePod ends a pod that only the runtime knows, and removes
// what it left.
func (k *Kubelet) SyncTerminatingRuntimePod(ctx context.Context, pod podworker.RunningPod) error {
	runtime, err := k.state.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
	if err != nil {
		return fmt.Errorf("what the runtime has of the pod is not known: %w", err)
	}
	running := runtime.RunningPod(k.state.Name())
	if len(runtime.Running()) > 0 {
		k.logger.Info("ending a pod that no source has", zap.String("pod", pod.Namespace+"/"+pod.Name), zap.String("uid", string(pod.UID)))
	}
	grace := int64(1)
	if err := k.runtime.KillPod(ctx, nil, running, &grace); err != nil {
		return fmt.Errorf("end containers: %w", err)
	}
	return k.removeFromRuntime(ctx, pod, running)
}

// removeFromRuntime removes a pod's logs, dead containers and sandboxes. The logs come
// first: nobody writes them any more, and the runtime may refuse to remove the rest for
// a long time.
func (k *Kubelet) removeFromRuntime(ctx context.Context, pod podworker.RunningPod, running *runtimestate.RunningPod) error {
	if err := os.RemoveAll(podfiles.LogDirectory(k.config.PodLogsDir, pod.Namespace, pod.Name, pod.UID)); err != nil {
		return fmt.Errorf("remove logs: %w", err)
	}
	if err := loglinks.RemovePod(k.config.PodLogsDir, pod.Namespace, pod.Name); err != nil {
		return err
	}
	if err := k.runtime.RemovePod(ctx, running); err != nil {
		return fmt.Errorf("remove containers: %w", err)
	}
	k.pleg.Poke()
	return nil
}

// SyncTerminatedPod releases what the pod held on the node. Nothing is left of a pod that is being
// deleted or is gone from its source; if it just ended, its dead containers and their logs stay for
// people to look at.
func (k *Kubelet) SyncTerminatedPod(ctx context.Context, job podworker.Job) (err error) {
	pod := job.Pod
	ctx, span := k.tracePod(ctx, "syncTerminatedPod", pod)
	defer func() { tracing.End(span, err) }()
	if err := k.volumes.Unmount(ctx, pod.UID); err != nil {
		k.events.Eventf(pod, corev1.EventTypeWarning, "FailedUnMount", "%v", err)
		return err
	}
	if err := k.release(ctx, job); err != nil {
		k.events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: %v", err)
		return err
	}
	k.waits.forget(pod.UID)
	k.actives.forget(pod.UID)
	k.rooms.forget(pod.UID)
	k.allocations.Forget(pod.UID)
	k.statuses.Finish(pod)
	if job.Removed {
		k.mirrors.Drop(pod)
	}
	return nil
}

// release releases what the pod held besides its volumes.
func (k *Kubelet) release(ctx context.Context, job podworker.Job) error {
	pod := job.Pod
	if err := k.cgroups.Destroy(pod.UID, cgroup.QOSClass(pod)); err != nil {
		return err
	}
	if err := k.userIDs.Release(pod.UID); err != nil {
		return err
	}
	if _, desired := k.pods.ByUID(pod.UID); job.Removed || !desired || pod.DeletionTimestamp != nil {
		return k.removePod(ctx, pod)
	}
	return nil
}

func (k *Kubelet) removePod(ctx context.Context, pod *core.Pod) error {
	runtime, err := k.inRuntime(ctx, pod)
	if err != nil {
		return err
	}
	running := runtime.RunningPod(k.state.Name())
	if err := k.removeFromRuntime(ctx, podworker.RunningPod{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}, running); err != nil {
		if !k.nothingRuns(ctx, pod) {
			return err
		}
		// For a container during whose start a kubelet was killed, containerd 1.6
		// refuses it until containerd is restarted. Housekeeping goes on trying; the
		// object does not wait for that, as upstream's doesn't.
		k.events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: %v", err)
		k.logger.Warn("what ended of a pod is not removed yet", daemon.PodFields(pod), zap.Error(err))
	}
	// Not with the next relist: a static pod may come back at once.
	removed := k.clock.Now()
	k.cache.Set(pod.UID, &runtimestate.PodStatus{UID: pod.UID, Name: pod.Name, Namespace: pod.Namespace, At: removed}, nil, removed)
	return k.volumes.RemovePodDir(ctx, pod.UID)
}

// nothingRuns says that according to the runtime everything of the pod has ended.
func (k *Kubelet) nothingRuns(ctx context.Context, pod *core.Pod) bool {
	now, err := k.state.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
	return err == nil && now.ReadySandbox() == nil &&
		!slices.ContainsFunc(now.Containers, func(c *runtimestate.ContainerStatus) bool { return c.State != runtimestate.StateExited })
}
