package core

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Restarts tells whether a container that ended with this exit code runs again,
// by its own rules and policy or, without them, its pod's (KEP-5307): the first
// rule that names the exit code decides, or the policy if none does.
func Restarts(spec *PodSpec, c *Container, exitCode int32) bool {
	if RestartAction(c, exitCode) != "" {
		return true // alone, or with all others
	}
	switch RestartPolicyOf(spec, c) {
	case corev1.ContainerRestartPolicyNever:
		return false
	case corev1.ContainerRestartPolicyOnFailure:
		return exitCode != 0
	}
	return true
}

// MayStartOver tells whether the end of one of the pod's containers may restart them all, and so
// each of them, whatever its own policy (KEP-5532).
func MayStartOver(spec *PodSpec) bool {
	startsOver := func(rule corev1.ContainerRestartRule) bool {
		return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
	}
	for c := range Containers(spec) {
		if slices.ContainsFunc(c.RestartPolicyRules, startsOver) {
			return true
		}
	}
	return false
}

// RestartPolicyOf is the container's own restart policy, or the pod's.
func RestartPolicyOf(spec *PodSpec, c *Container) corev1.ContainerRestartPolicy {
	if c.RestartPolicy != nil {
		return *c.RestartPolicy
	}
	return corev1.ContainerRestartPolicy(cmp.Or(spec.RestartPolicy, corev1.RestartPolicyAlways))
}

// RestartAction is the action of the container's first rule about the exit code; ""
// if there is none.
func RestartAction(c *Container, exitCode int32) corev1.ContainerRestartRuleAction {
	for _, rule := range c.RestartPolicyRules {
		if ruleApplies(rule, exitCode) {
			return rule.Action
		}
	}
	return ""
}

func ruleApplies(rule corev1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, exitCode)
	return listed == (rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn)
}
