package core

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestRestarts: a container's first rule about its exit code decides, then its own policy, then its pod's.
func TestRestarts(t *testing.T) {
	never, onFailure, always := corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyAlways
	rule := func(operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
		return corev1.ContainerRestartRule{
			Action: corev1.ContainerRestartRuleActionRestart, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes},
		}
	}
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	for _, test := range []struct {
		name string
		pod  corev1.RestartPolicy
		own  *corev1.ContainerRestartPolicy
		rule corev1.ContainerRestartRule
		code int32
		want bool
	}{
		{"the pod's default", "", nil, corev1.ContainerRestartRule{}, 0, true},
		{"the pod's never", corev1.RestartPolicyNever, nil, corev1.ContainerRestartRule{}, 1, false},
		{"the pod's, failed", corev1.RestartPolicyOnFailure, nil, corev1.ContainerRestartRule{}, 1, true},
		{"the pod's, not failed", corev1.RestartPolicyOnFailure, nil, corev1.ContainerRestartRule{}, 0, false},
		{"its own always", corev1.RestartPolicyNever, &always, corev1.ContainerRestartRule{}, 0, true},
		{"its own never", corev1.RestartPolicyAlways, &never, corev1.ContainerRestartRule{}, 1, false},
		{"its own, failed", corev1.RestartPolicyNever, &onFailure, corev1.ContainerRestartRule{}, 1, true},
		{"its own, not failed", corev1.RestartPolicyAlways, &onFailure, corev1.ContainerRestartRule{}, 0, false},
		{"a rule", corev1.RestartPolicyNever, &never, rule(in, 3, 42), 42, true},
		{"a rule for other codes", corev1.RestartPolicyNever, &never, rule(in, 3, 42), 1, false},
		{"a rule for all other codes", corev1.RestartPolicyNever, &never, rule(notIn, 3, 42), 1, true},
		{"a rule for all but this", corev1.RestartPolicyNever, &never, rule(notIn, 3, 42), 3, false},
	} {
		c := &Container{RestartPolicy: test.own, RestartPolicyRules: []corev1.ContainerRestartRule{test.rule}}
		if got := Restarts(&PodSpec{RestartPolicy: test.pod}, c, test.code); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// TestRestartAction: of several rules about an exit code the first counts, and rules about none are skipped.
func TestRestartAction(t *testing.T) {
	const one, all = corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers
	rule := func(action corev1.ContainerRestartRuleAction, codes ...int32) corev1.ContainerRestartRule {
		return corev1.ContainerRestartRule{
			Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: codes},
		}
	}
	c := &Container{RestartPolicyRules: []corev1.ContainerRestartRule{{Action: one}, rule(all, 3), rule(one, 3, 42)}}
	for code, want := range map[int32]corev1.ContainerRestartRuleAction{3: all, 42: one, 1: ""} {
		if got := RestartAction(c, code); got != want {
			t.Errorf("after %d: %q, want %q", code, got, want)
		}
	}
}

// TestMayStartOver: any container may have the rule.
func TestMayStartOver(t *testing.T) {
	all := Container{RestartPolicyRules: []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}}
	one := Container{RestartPolicyRules: []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart}}}
	for name, test := range map[string]struct {
		spec PodSpec
		want bool
	}{
		"nobody":            {PodSpec{Containers: []Container{{}, one}}, false},
		"a container":       {PodSpec{Containers: []Container{{}, all}}, true},
		"an init container": {PodSpec{InitContainers: []Container{all}, Containers: []Container{{}}}, true},
	} {
		if got := MayStartOver(&test.spec); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
