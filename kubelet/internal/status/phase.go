package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// tally counts containers by what they do.
type tally struct {
	waiting, running, succeeded, failed int
	again                               int // of those that ended, the ones that will be restarted
}

func (t *tally) add(spec *core.PodSpec, c *core.Container, status *core.ContainerStatus, a restartAll) {
	ended := status.State.Terminated
	if ended == nil && !a.before(status) {
		ended = status.LastTerminationState.Terminated // it is between two runs
	}
	switch {
	case status.State.Running != nil:
		t.running++
		return
	case ended == nil:
		t.waiting++
		return
	case ended.ExitCode == 0:
		t.succeeded++
	default:
		t.failed++
	}
	if core.Restarts(spec, c, ended.ExitCode) {
		t.again++
	}
}

// phase sums the container states up (Kubernetes docs, "Pod Lifecycle"):
//
//	Pending    init containers are not through, or a container never started
//	Running    at least one container runs, or will be restarted
//	Succeeded  all ended with exit code zero and none will be restarted
//	Failed     all ended, one at least not well, and none will be restarted;
//	           or an init container failed that is not tried again
//
// initialized says that a regular container was made in the pod's present sandbox.
// Sidecars that start after that do not make the pod Pending, nor do those that have
// ended and were not started again yet.
//
// Whether a container will be restarted is decided by its own rules and policy,
// or by the pod's policy if it has none. A pod that starts over is Pending
// again.
func phase(spec *core.PodSpec, status *core.PodStatus, initialized, terminal bool, a restartAll) corev1.PodPhase {
	pendingInit, pendingSidecar, failedInit := false, false, false
	for i := range spec.InitContainers {
		c, s := &spec.InitContainers[i], &status.InitContainerStatuses[i]
		switch {
		case core.IsSidecar(c):
			pendingSidecar = pendingSidecar || s.State.Running != nil && !ptr.Deref(s.Started, false) ||
				s.State.Waiting != nil && s.LastTerminationState.Terminated == nil
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
		case s.State.Terminated != nil:
			failedInit = failedInit || !core.Restarts(spec, c, s.State.Terminated.ExitCode)
			pendingInit = true
		default:
			pendingInit = true
		}
	}
	var t tally
	for i := range status.ContainerStatuses {
		t.add(spec, &spec.Containers[i], &status.ContainerStatuses[i], a)
	}
	switch {
	case terminal && t.succeeded == len(spec.Containers):
		return corev1.PodSucceeded
	case terminal:
		return corev1.PodFailed
	case a.ok:
		return corev1.PodPending
	case failedInit:
		return corev1.PodFailed
	case pendingInit, pendingSidecar && !initialized, t.waiting > 0:
		return corev1.PodPending
	case t.running > 0, t.again > 0:
		return corev1.PodRunning
	case t.failed == 0:
		return corev1.PodSucceeded
	default:
		return corev1.PodFailed
	}
}
