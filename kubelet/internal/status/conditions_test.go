package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// Readiness gates (Kubernetes docs, "Pod readiness"): conditions that others write.
func TestReadinessGates(t *testing.T) {
	condition := func(name corev1.PodConditionType, status corev1.ConditionStatus) core.PodCondition {
		return core.PodCondition{Type: name, Status: status}
	}
	for name, c := range map[string]struct {
		gates      []corev1.PodConditionType
		conditions []core.PodCondition
		want       string // the message, "" if the gates are passed
	}{
		"no gate":   {nil, []core.PodCondition{condition("other", corev1.ConditionFalse)}, ""},
		"passed":    {[]corev1.PodConditionType{"a"}, []core.PodCondition{condition("a", corev1.ConditionTrue)}, ""},
		"not there": {[]corev1.PodConditionType{"a"}, nil, `corresponding condition of pod readiness gate "a" does not exist.`},
		"not true": {[]corev1.PodConditionType{"a"}, []core.PodCondition{condition("a", corev1.ConditionFalse)},
			`the status of pod readiness gate "a" is not "True", but False`},
		"unknown": {[]corev1.PodConditionType{"a"}, []core.PodCondition{condition("a", corev1.ConditionUnknown)},
			`the status of pod readiness gate "a" is not "True", but Unknown`},
		"one of three": {[]corev1.PodConditionType{"a", "b", "c"}, []core.PodCondition{condition("b", corev1.ConditionTrue), condition("c", corev1.ConditionFalse)},
			`corresponding condition of pod readiness gate "a" does not exist., the status of pod readiness gate "c" is not "True", but False`},
	} {
		spec := &core.PodSpec{}
		for _, gate := range c.gates {
			spec.ReadinessGates = append(spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
		}
		reason := ""
		if c.want != "" {
			reason = "ReadinessGatesNotReady"
		}
		if got := readinessGatesPassed(spec, c.conditions); got.ok != (c.want == "") || got.message != c.want || got.reason != reason {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// A sidecar is initialised once it has started, another init container once it has ended well.
func TestInitializedWithSidecars(t *testing.T) {
	spec := &testPod(corev1.RestartPolicyAlways, "i s+", "a").Spec
	for name, c := range map[string]struct {
		ended   bool
		started *bool
		want    string
	}{
		"nothing yet":               {false, nil, "containers with incomplete status: [i s]"},
		"the sidecar is not there":  {true, nil, "containers with incomplete status: [s]"},
		"the sidecar has not begun": {true, new(false), "containers with incomplete status: [s]"},
		"the sidecar has started":   {true, new(true), ""},
		"only the sidecar":          {false, new(true), "containers with incomplete status: [i]"},
	} {
		status := &core.PodStatus{
			InitContainerStatuses: []core.ContainerStatus{{Name: "i", Ready: c.ended}, {Name: "s", Started: c.started}},
			ContainerStatuses:     []core.ContainerStatus{{Name: "a"}},
		}
		if got := initialized(spec, status); got.ok != (c.want == "") || got.message != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// The order of conditions means nothing.
func TestSameConditions(t *testing.T) {
	a, b := core.PodCondition{Type: "a", Status: corev1.ConditionTrue}, core.PodCondition{Type: "b", Status: corev1.ConditionTrue}
	changed := a
	changed.LastTransitionTime = metav1.NewTime(now)
	for name, c := range map[string]struct {
		one, other []core.PodCondition
		want       bool
	}{
		"none":          {nil, nil, true},
		"another order": {[]core.PodCondition{a, b}, []core.PodCondition{b, a}, true},
		"one more":      {[]core.PodCondition{a}, []core.PodCondition{a, b}, false},
		"another type":  {[]core.PodCondition{a}, []core.PodCondition{b}, false},
		"another value": {[]core.PodCondition{a, b}, []core.PodCondition{b, changed}, false},
	} {
		if got := sameConditions(c.one, c.other); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A kubelet has begun with a pod once there is a status of any container.
func TestBegun(t *testing.T) {
	one := []core.ContainerStatus{{Name: "a"}}
	for name, c := range map[string]struct {
		status core.PodStatus
		want   bool
	}{
		"new":                    {core.PodStatus{Phase: corev1.PodPending}, false},
		"an init container":      {core.PodStatus{InitContainerStatuses: one}, true},
		"a container":            {core.PodStatus{ContainerStatuses: one}, true},
		"an ephemeral container": {core.PodStatus{EphemeralContainerStatuses: one}, true},
		"one of each":            {core.PodStatus{InitContainerStatuses: one, ContainerStatuses: one, EphemeralContainerStatuses: one}, true},
	} {
		if got := Begun(&c.status); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
