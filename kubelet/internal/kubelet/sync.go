package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/status"
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
func (k *Kubelet) SyncPod(ctx context.Context, job podworker.Job) (_ podworker.Outcome, err error) {
	pod := job.Pod
	ctx, span := k.tracePod(ctx, "syncPod", pod)
	defer func() { tracing.End(span, err) }()
	if job.First {
		k.begin(job)
	}
	runtime, err := k.inRuntime(ctx, pod)
	if err != nil {
		return podworker.Outcome{}, err
	}
	pod = k.grant(pod)
	current := k.generate(pod, runtime, false)
	deadline, exceeded := k.deadline(pod, &current)
	k.statuses.Set(pod, current)
	if status.Ended(current.Phase) || exceeded {
		return podworker.Outcome{Terminal: true}, nil
	}
	if err := k.awaitRoom(ctx, pod); err != nil {
		return podworker.Outcome{}, err
	}
	if err := k.health.NetworkError(); err != nil && !pod.Spec.HostNetwork {
		k.events.Eventf(pod, corev1.EventTypeWarning, "NetworkNotReady", "network is not ready: %v", err)
		return podworker.Outcome{}, fmt.Errorf("network is not ready: %w", err)
	}
	settle, err := k.makeGroup(job, pod, runtime)
	if err != nil {
		k.events.Eventf(pod, corev1.EventTypeWarning, "FailedToCreatePodContainer", "unable to ensure pod container exists: %v", err)
		return podworker.Outcome{}, err
	}
	if err := k.endPredecessors(ctx, pod, runtime); err != nil {
		return podworker.Outcome{}, err
	}
	k.mirrors.Ensure(pod)
	if err := os.MkdirAll(podfiles.PodDir(k.config.RootDir, pod.UID), 0o750); err != nil {
		k.events.Eventf(pod, corev1.EventTypeWarning, "Failed", "error making pod data directories: %v", err)
		return podworker.Outcome{}, fmt.Errorf("directory of the pod: %w", err)
	}
	k.objects.Register(pod) // so that what it is told is kept until the next sync
	pull := sync.OnceValue(func() pullSecrets { return k.pullSecrets(ctx, pod) })
	k.probes.AddPod(pod)
	started := k.events.countStart()
	defer started()
	result := k.syncRuntime(ctx, pod, runtime, func() []*core.Secret { return pull().found })
	k.tellMissing(pod, pull, result.Waiting)
	if result.Err == nil {
		result.Err = settle()
	}
	k.noteResize(pod, result.Err)
	return k.conclude(ctx, pod, runtime, result, deadline)
}

// syncRuntime brings the pod forward in the runtime, and mounts its volumes.
func (k *Kubelet) syncRuntime(ctx context.Context, pod *core.Pod, runtime *runtimestate.PodStatus, secrets func() []*core.Secret) podruntime.SyncResult {
	mounted := false
	result := k.runtime.SyncPod(ctx, pod, runtime, podruntime.SyncOptions{
		PullSecrets: secrets,
		Prepare: func(ctx context.Context) error {
			mounted = true
			return k.mountVolumes(ctx, pod)
		},
		Mounts:    k.mountsOf(pod),
		ReadFile:  k.filesOf(pod),
		Probes:    k.probes.Results,
		Resources: podResources{k, pod},
		Changed:   func(changed *runtimestate.PodStatus) { k.report(pod, changed) },
	})
	if !mounted && result.Err == nil && ctx.Err() == nil {
		// Nothing was to be started. The volumes still have to show the pod as it is
		// now, and a kubelet that has just started has to learn about them again.
		result.Err = k.mountVolumes(ctx, pod)
	}
	return result
}

// inRuntime is the pod's state in the runtime, as far as known. If the last query
// failed, the runtime is asked again now: that may work by now, and to act on the
// old failure would count as a new one, after which the pod is left alone for
// even longer.
func (k *Kubelet) inRuntime(ctx context.Context, pod *core.Pod) (*runtimestate.PodStatus, error) {
	known, err := k.cache.GetNewerThan(ctx, pod.UID, time.Time{})
	if err != nil && ctx.Err() == nil {
		asked := k.clock.Now()
		known, err = k.state.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
		k.cache.Set(pod.UID, known, err, asked)
	}
	if err != nil {
		return nil, fmt.Errorf("what the runtime has of the pod is not known: %w", err)
	}
	return known, nil
}

// begin is what the first sync of a pod does once.
func (k *Kubelet) begin(job podworker.Job) {
	k.statuses.Begin(job.Pod, job.Start)
	k.statuses.Recorder(job.Pod).Stamp(relay.KubeletWorker, k.clock.Now())
	k.metrics.ContainersPerPod.Observe(float64(len(job.Pod.Spec.Containers)))
	if !job.Start.IsZero() {
		k.metrics.WorkerStart.Observe(k.clock.Since(job.Start).Seconds())
	}
}

// conclude puts the result of a sync in the runtime into the status, and says
// when to look again.
func (k *Kubelet) conclude(ctx context.Context, pod *core.Pod, before *runtimestate.PodStatus, result podruntime.SyncResult, deadline time.Duration) (podworker.Outcome, error) {
	if ctx.Err() != nil {
		return podworker.Outcome{}, ctx.Err() // the pod's end is next
	}
	k.waits.note(pod.UID, result.Waiting)
	k.report(pod, result.Status)
	if result.Status != before {
		k.pleg.Inspect(pod.UID)
	}
	if result.Err != nil {
		return podworker.Outcome{}, result.Err
	}
	current, _ := k.statuses.Get(pod.UID)
	after := result.RetryAfter
	if k.allocations.Pending(pod.UID) != nil && (after == 0 || resizeRetry < after) {
		after = resizeRetry
	}
	if deadline > 0 && (after == 0 || deadline < after) {
		after = deadline
	}
	return podworker.Outcome{Terminal: status.Ended(current.Phase), After: after}, nil
}

// deadline is how long the pod may still be active; if it was active for too
// long, its status says so.
func (k *Kubelet) deadline(pod *core.Pod, current *core.PodStatus) (left time.Duration, exceeded bool) {
	if pod.Spec.ActiveDeadlineSeconds == nil || current.StartTime == nil || status.Ended(current.Phase) {
		return 0, false
	}
	left = time.Duration(*pod.Spec.ActiveDeadlineSeconds)*time.Second - k.clock.Since(k.actives.of(pod.UID, current.StartTime.Time, k.clock.Now()))
	if left > 0 {
		return left, false
	}
	current.Phase = corev1.PodFailed
	current.Reason = "DeadlineExceeded"
	current.Message = "Pod was active on the node longer than the specified deadline"
	k.events.Eventf(pod, corev1.EventTypeNormal, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
	return 0, true
}

// mountsOf says which of the pod's volumes its containers get.
func (k *Kubelet) mountsOf(pod *core.Pod) func(context.Context, *core.Container, map[string]string) ([]runtimeconfig.Mount, error) {
	if k.hollow != nil {
		return noMounts
	}
	return func(ctx context.Context, c *core.Container, env map[string]string) ([]runtimeconfig.Mount, error) {
		return k.volumes.Mounts(ctx, pod, c, env)
	}
}

// filesOf reads what a pod's containers wrote. Hollow pods' containers write
// nothing, and nobody waits for that.
func (k *Kubelet) filesOf(pod *core.Pod) func(volume, path string) ([]byte, error) {
	if k.hollow != nil {
		return nil
	}
	return func(volume, path string) ([]byte, error) { return k.volumes.ReadFile(pod, volume, path) }
}

// mountVolumes runs beside the making of the sandbox.
func (k *Kubelet) mountVolumes(ctx context.Context, pod *core.Pod) error {
	mount := k.volumes.Mount
	if k.hollow != nil {
		mount = k.mountNothing
	}
	ctx, span := tracing.Step(ctx, "volumes")
	err := mount(ctx, pod)
	tracing.End(span, err)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			k.mountFailed(pod, err)
		}
		return err
	}
	k.statuses.Recorder(pod).Stamp(relay.KubeletVolumesReady, k.clock.Now())
	return nil
}

func (k *Kubelet) mountFailed(pod *core.Pod, err error) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap() // of a volume each
	}
	for _, one := range all {
		k.events.Eventf(pod, corev1.EventTypeWarning, "FailedMount", "%v", one)
	}
}

// pullSecrets are a pod's pull secrets that could be read, and the names of the
// others, without which pulls may succeed, too.
type pullSecrets struct {
	found   []*core.Secret
	missing []string
}

// pullSecrets reads the pod's pull secrets in parallel: each one that the node may
// not read takes its time.
func (k *Kubelet) pullSecrets(ctx context.Context, pod *core.Pod) (secrets pullSecrets) {
	if podmanager.IsStatic(pod) {
		return secrets
	}
	found := make([]*core.Secret, len(pod.Spec.ImagePullSecrets))
	var asking sync.WaitGroup
	for i, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		asking.Go(func() {
			if secret, err := k.objects.Secret(ctx, pod.Namespace, ref.Name); err == nil {
				found[i] = secret
			}
		})
	}
	asking.Wait()
	for i, ref := range pod.Spec.ImagePullSecrets {
		switch {
		case found[i] != nil:
			secrets.found = append(secrets.found, found[i])
		case ref.Name != "":
			secrets.missing = append(secrets.missing, ref.Name)
		}
	}
	return secrets
}

// tellMissing reports missing pull secrets, if a pull failed.
func (k *Kubelet) tellMissing(pod *core.Pod, pull func() pullSecrets, waiting map[string]runtimestate.Waiting) {
	for _, why := range waiting {
		if why.Reason != image.ReasonErrPull {
			continue
		}
		if missing := pull().missing; len(missing) > 0 {
			k.events.Eventf(pod, corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(missing, ", "))
		}
		return
	}
}
