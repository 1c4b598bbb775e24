package lifecycle

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/tracing"
)

// SyncPod is the script of a pod that is to run: it brings the pod from its
// state in the runtime towards the desired one, and may be called at any time.
//
//	granted resources → status → deadline → room → network → control group → predecessors → mirror pod →
//	directories → probes → runtime (volumes and images, with their secrets, beside the sandbox) →
//	what came of it
func (l *Lifecycle) SyncPod(ctx context.Context, job podworker.Job) (_ podworker.Outcome, err error) {
	pod := job.Pod
	ctx, span := l.tracePod(ctx, "syncPod", pod)
	defer func() { tracing.End(span, err) }()
	if job.First {
		l.firstSync(job)
	}
	found, err := l.runtimeStatus(ctx, pod)
	if err != nil {
		return podworker.Outcome{}, err
	}
	pod = l.allocate(pod)
	settled := l.Probes.Settled(pod, found)
	current := l.generate(pod, found, false)
	deadline, exceeded := l.deadline(pod, &current)
	l.set(pod, current, settled)
	if core.Ended(current.Phase) || exceeded {
		return podworker.Outcome{Terminal: true}, nil
	}
	if err := l.waitForVictims(ctx, pod); err != nil {
		return podworker.Outcome{}, err
	}
	if err := l.NetworkError(); err != nil && !pod.Spec.HostNetwork {
		l.Events.Eventf(pod, corev1.EventTypeWarning, "NetworkNotReady", "network is not ready: %v", err)
		return podworker.Outcome{}, fmt.Errorf("network is not ready: %w", err)
	}
	finishCgroup, err := l.ensureCgroup(pod, found)
	if err != nil {
		l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedCreatePodContainer", "unable to ensure pod container exists: %v", err)
		return podworker.Outcome{}, err
	}
	if l.Cgroups.PerQOS { // else it is the runtime that makes it
		l.Statuses.Stamps(pod).Stamp(relay.KubeletCgroupCreated, l.Clock.Now())
	}
	if err := l.endPredecessors(ctx, pod, found); err != nil {
		return podworker.Outcome{}, err
	}
	result, err := l.run(ctx, pod, found)
	if err != nil {
		return podworker.Outcome{}, err
	}
	result.Err = l.finishResize(pod, found, result.Err, finishCgroup)
	return l.conclude(ctx, pod, found, result, deadline)
}

// run makes what the pod needs on the node and in the API, and brings it forward in the
// runtime.
func (l *Lifecycle) run(ctx context.Context, pod *core.Pod, found *runtimestate.PodStatus) (podruntime.SyncResult, error) {
	l.Mirrors.EnsureMirror(pod)
	if err := l.onDisk(pod, func() error { return os.MkdirAll(podfiles.PodDir(l.RootDir, pod.UID), 0o750) }); err != nil {
		l.Events.Eventf(pod, corev1.EventTypeWarning, "Failed", "error making pod data directories: %v", err)
		return podruntime.SyncResult{}, fmt.Errorf("directory of the pod: %w", err)
	}
	l.Objects.Register(pod) // so that its objects are kept until the next sync
	pull := sync.OnceValue(func() pullSecrets { return l.pullSecrets(ctx, pod) })
	l.Probes.AddPod(pod)
	started := l.Events.StartPod()
	defer started()
	result := l.syncRuntime(ctx, pod, found, func() []*core.Secret { return pull().found })
	l.recordMissingSecrets(pod, pull, result.Waiting)
	return result, nil
}

// syncRuntime brings the pod forward in the runtime, and mounts its volumes.
func (l *Lifecycle) syncRuntime(ctx context.Context, pod *core.Pod, found *runtimestate.PodStatus,
	secrets func() []*core.Secret) podruntime.SyncResult {
	mounted := false
	result := l.Runtime.SyncPod(ctx, pod, found, podruntime.SyncOptions{
		PullSecrets: secrets,
		Prepare: func(ctx context.Context) error {
			mounted = true
			return l.mountVolumes(ctx, pod)
		},
		Mounts: func(ctx context.Context, c *core.Container, env map[string]string) ([]runtimeconfig.Mount, error) {
			return l.Volumes.Mounts(ctx, pod, c, env)
		},
		ReadFile:  l.filesOf(pod),
		Probes:    l.Probes.Results,
		Resources: podResources{l, pod},
		Changed:   func(changed *runtimestate.PodStatus) { l.report(pod, changed) },
	})
	if !mounted && result.Err == nil && ctx.Err() == nil {
		// Nothing was to be started. The volumes still have to show the pod as it is
		// now, and a kubelet that has just started has to learn about them again.
		result.Err = l.mountVolumes(ctx, pod)
	}
	return result
}

// runtimeStatus returns the pod's state in the runtime, as far as known. If the
// last query failed, it asks the runtime again: that may work by now, and the
// old failure would otherwise count as a new one, with a longer back-off.
func (l *Lifecycle) runtimeStatus(ctx context.Context, pod *core.Pod) (*runtimestate.PodStatus, error) {
	known, err := l.Cache.GetNewerThan(ctx, pod.UID, time.Time{})
	if err != nil && ctx.Err() == nil {
		asked := l.Clock.Now()
		known, err = l.State.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
		l.Cache.Set(pod.UID, known, err, asked)
	}
	if err != nil {
		return nil, l.unknown(ctx, pod, err)
	}
	return known, nil
}

// unknown is the error of a step that can't learn what the runtime has of the pod. It is an event, too, unless
// the step was cut short.
func (l *Lifecycle) unknown(ctx context.Context, pod *core.Pod, err error) error {
	if ctx.Err() == nil {
		l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedSync", "error determining status: %v", err)
	}
	return fmt.Errorf("what the runtime has of the pod is not known: %w", err)
}

// firstSync is what the first sync of a pod does once.
func (l *Lifecycle) firstSync(job podworker.Job) {
	l.Statuses.Begin(job.Pod, job.Start)
	l.Statuses.Stamps(job.Pod).Stamp(relay.KubeletWorker, l.Clock.Now())
	l.Begun(job.Pod, job.Start)
}

// conclude puts the result of a sync in the runtime into the status, and says
// when to look again.
func (l *Lifecycle) conclude(ctx context.Context, pod *core.Pod, before *runtimestate.PodStatus, result podruntime.SyncResult,
	deadline time.Duration) (podworker.Outcome, error) {
	if ctx.Err() != nil {
		return podworker.Outcome{}, ctx.Err() // the pod's end is next
	}
	l.records.noteWaiting(pod.UID, result.Waiting)
	l.report(pod, result.Status)
	if result.Status != before {
		l.PLEG.RequestReinspect(pod.UID)
	}
	if result.Err != nil {
		return podworker.Outcome{}, result.Err
	}
	current, _ := l.Statuses.Get(pod.UID)
	after := result.RetryAfter
	if l.Allocations.Pending(pod.UID) != nil && (after == 0 || resizeRetry < after) {
		after = resizeRetry
	}
	if deadline > 0 && (after == 0 || deadline < after) {
		after = deadline
	}
	return podworker.Outcome{Terminal: core.Ended(current.Phase), After: after}, nil
}

// deadline is how long the pod may still be active; if it was active for too
// long, its status says so.
func (l *Lifecycle) deadline(pod *core.Pod, current *core.PodStatus) (left time.Duration, exceeded bool) {
	if pod.Spec.ActiveDeadlineSeconds == nil || current.StartTime == nil || core.Ended(current.Phase) {
		return 0, false
	}
	left = core.Seconds(*pod.Spec.ActiveDeadlineSeconds) - l.Clock.Since(l.records.activeSince(pod.UID, current.StartTime.Time, l.Clock.Now()))
	if left > 0 {
		return left, false
	}
	current.Phase = corev1.PodFailed
	current.Reason = "DeadlineExceeded"
	current.Message = "Pod was active on the node longer than the specified deadline"
	l.Events.Eventf(pod, corev1.EventTypeNormal, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
	return 0, true
}
