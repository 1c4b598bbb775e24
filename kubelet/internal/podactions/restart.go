package podactions

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// shouldRestart tells whether a container that does not run shall be started.
func shouldRestart(pod *core.Pod, c *core.Container, last *runtimestate.ContainerStatus) bool {
	switch {
	case pod.DeletionTimestamp != nil:
		return false
	case last == nil, last.State == runtimestate.StateUnknown, last.State == runtimestate.StateCreated:
		return true
	case last.State == runtimestate.StateRunning:
		return false
	}
	return core.Restarts(&pod.Spec, c, last.ExitCode)
}

// startsInNewSandbox tells whether a container that was lost with its sandbox
// runs again in the next one. If it still runs, its exit code is unknown, so
// its policy decides.
func startsInNewSandbox(pod *core.Pod, c *core.Container, last *runtimestate.ContainerStatus) bool {
	switch {
	case last == nil, last.State == runtimestate.StateCreated:
		return true
	case last.State == runtimestate.StateExited:
		return core.Restarts(&pod.Spec, c, last.ExitCode)
	}
	return core.RestartPolicyOf(&pod.Spec, c) != corev1.ContainerRestartPolicyNever
}

// ran tells whether a container was more than made: the kubelet or the runtime may have gone,
// or the sandbox, before it was started.
func ran(c *runtimestate.ContainerStatus) bool { return c.State != runtimestate.StateCreated }

// anyRestarts tells whether anything of a pod that has run may run again: a
// container because of its policy, or an ended one because of its rules.
func anyRestarts(pod *core.Pod, status *runtimestate.PodStatus) bool {
	again := func(c core.Container) bool {
		last := status.Container(c.Name)
		return last != nil && last.State == runtimestate.StateExited && len(c.RestartPolicyRules) > 0 &&
			core.Restarts(&pod.Spec, &c, last.ExitCode)
	}
	policy := func(c core.Container) bool {
		return core.RestartPolicyOf(&pod.Spec, &c) != corev1.ContainerRestartPolicyNever
	}
	initAgain := func(c core.Container) bool { return !core.IsSidecar(&c) && again(c) }
	return slices.ContainsFunc(pod.Spec.Containers, policy) || slices.ContainsFunc(pod.Spec.Containers, again) ||
		slices.ContainsFunc(pod.Spec.InitContainers, initAgain)
}
