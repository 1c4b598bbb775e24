package podactions

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Restarts tells whether a container that ended with this exit code runs again,
// by its own rules and policy or, without them, its pod's (KEP-5307): the first
// rule that names the exit code decides, or the policy if none does.
func Restarts(spec *core.PodSpec, c *core.Container, exitCode int32) bool {
	if actionFor(c, exitCode) != "" {
		return true // alone, or with all others
	}
	switch restartPolicyOf(spec, c) {
	case corev1.ContainerRestartPolicyNever:
		return false
	case corev1.ContainerRestartPolicyOnFailure:
		return exitCode != 0
	}
	return true
}

// restartPolicyOf is the container's own restart policy, or the pod's.
func restartPolicyOf(spec *core.PodSpec, c *core.Container) corev1.ContainerRestartPolicy {
	if c.RestartPolicy != nil {
		return *c.RestartPolicy
	}
	return corev1.ContainerRestartPolicy(cmp.Or(spec.RestartPolicy, corev1.RestartPolicyAlways))
}

func ruleApplies(rule corev1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, exitCode)
	return listed == (rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn)
}

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
	return Restarts(&pod.Spec, c, last.ExitCode)
}

// startsInNewSandbox tells whether a container that was lost with its sandbox
// runs again in the next one. If it still runs, its exit code is unknown, so
// its policy decides.
func startsInNewSandbox(pod *core.Pod, c *core.Container, last *runtimestate.ContainerStatus) bool {
	switch {
	case last == nil, last.State == runtimestate.StateCreated:
		return true
	case last.State == runtimestate.StateExited:
		return Restarts(&pod.Spec, c, last.ExitCode)
	}
	return restartPolicyOf(&pod.Spec, c) != corev1.ContainerRestartPolicyNever
}

// ran tells whether a container was more than made: the kubelet or the runtime may have gone,
// or the sandbox, before it was started.
func ran(c *runtimestate.ContainerStatus) bool { return c.State != runtimestate.StateCreated }

// anyRestarts tells whether anything of a pod that has run may run again: a
// container because of its policy, or an ended one because of its rules.
func anyRestarts(pod *core.Pod, status *runtimestate.PodStatus) bool {
	again := func(c core.Container) bool {
		last := status.Container(c.Name)
		return last != nil && last.State == runtimestate.StateExited && len(c.RestartPolicyRules) > 0 && Restarts(&pod.Spec, &c, last.ExitCode)
	}
	policy := func(c core.Container) bool {
		return restartPolicyOf(&pod.Spec, &c) != corev1.ContainerRestartPolicyNever
	}
	initAgain := func(c core.Container) bool { return !core.IsSidecar(&c) && again(c) }
	return slices.ContainsFunc(pod.Spec.Containers, policy) || slices.ContainsFunc(pod.Spec.Containers, again) ||
		slices.ContainsFunc(pod.Spec.InitContainers, initAgain)
}
