package status

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// tally counts containers by what they do.
type tally struct {
	waiting, running, succeeded, failed int
}

func (t *tally) add(state corev1.ContainerState, last corev1.ContainerState) {
	switch {
	case state.Running != nil:
		t.running++
	case state.Terminated != nil && state.Terminated.ExitCode == 0:
		t.succeeded++
	case state.Terminated != nil:
		t.failed++
	case last.Terminated != nil && last.Terminated.ExitCode == 0:
		t.succeeded++ // between two runs
	case last.Terminated != nil:
		t.failed++
	default:
		t.waiting++
	}
}

// phase sums the container states up (Kubernetes docs, "Pod Lifecycle"):
//
//	Pending    init containers are not through, or a container never started
//	Running    at least one container runs, or will be restarted
//	Succeeded  all ended with exit code zero and none will be restarted
//	Failed     all ended, one at least not well, and none will be restarted;
//	           or an init container failed that is not tried again
func phase(spec *core.PodSpec, status *core.PodStatus, terminal bool) corev1.PodPhase {
	pendingInit, failedInit := false, false
	for i := range spec.InitContainers {
		c, s := &spec.InitContainers[i], &status.InitContainerStatuses[i]
		switch {
		case Restartable(c):
			pendingInit = pendingInit || s.Started == nil || !*s.Started
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
		case s.State.Terminated != nil:
			failedInit = true
			pendingInit = true
		default:
			pendingInit = true
		}
	}
	var t tally
	for i := range status.ContainerStatuses {
		t.add(status.ContainerStatuses[i].State, status.ContainerStatuses[i].LastTerminationState)
	}
	switch {
	case terminal && t.succeeded == len(spec.Containers):
		return corev1.PodSucceeded
	case terminal:
		return corev1.PodFailed
	case failedInit && spec.RestartPolicy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	case pendingInit && t.running+t.succeeded+t.failed == 0, t.waiting > 0:
		return corev1.PodPending
	case t.running > 0, spec.RestartPolicy == corev1.RestartPolicyAlways:
		return corev1.PodRunning
	case t.failed == 0:
		return corev1.PodSucceeded
	case spec.RestartPolicy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}
