package status

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

func conditionTypes(conditions []core.PodCondition) string {
	var types []string
	for _, c := range conditions {
		types = append(types, string(c.Type))
	}
	return strings.Join(types, " ")
}

func conditionsOf(types string) (conditions []core.PodCondition) {
	for t := range strings.FieldsSeq(types) {
		conditions = append(conditions, core.PodCondition{Type: corev1.PodConditionType(t), Status: corev1.ConditionTrue})
	}
	return conditions
}

// Our own conditions come first, in upstream's order, which `describe` shows;
// others' follow. A difference only in order is not sent.
func TestOrderOfConditions(t *testing.T) {
	ours := core.PodStatus{Conditions: conditionsOf("Initialized Ready PodScheduled")}
	api := &core.PodStatus{Conditions: conditionsOf("PodScheduled gate")}
	first := merged(ours, api)
	if got := conditionTypes(first.Conditions); got != "Initialized Ready PodScheduled gate" {
		t.Errorf("order %s", got)
	}
	shuffled := &core.PodStatus{Conditions: conditionsOf("gate PodScheduled Ready Initialized")}
	if again := merged(ours, shuffled); !equality.Semantic.DeepEqual(again.Conditions, shuffled.Conditions) {
		t.Errorf("%s would be sent for the order alone", conditionTypes(again.Conditions))
	}
}

// A pod is not reported as ended before its containers have ended: others would
// take its place on the node, or replace it.
func TestThePhaseWaitsForContainers(t *testing.T) {
	evicted := core.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "short", Conditions: conditionsOf("Ready DisruptionTarget")}
	evicted.EphemeralContainerStatuses = []core.ContainerStatus{{Name: "shell", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	api := &core.PodStatus{Phase: corev1.PodRunning, Conditions: conditionsOf("Ready")}
	if got := merged(evicted, api); got.Phase != corev1.PodRunning || got.Reason != "" || got.Message != "" || conditionTypes(got.Conditions) != "Ready" {
		t.Errorf("while a container runs: %+v", got)
	}
	evicted.EphemeralContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	if got := merged(evicted, api); got.Phase != corev1.PodFailed || got.Reason != "Evicted" || conditionTypes(got.Conditions) != "Ready DisruptionTarget" {
		t.Errorf("in the end: %+v", got)
	}
}

// Containers of a pod whose sidecar never passed its startup probe were never
// to be started: they are not lost.
func TestASidecarThatNeverStarted(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "i+", "a")
	pod.Spec.InitContainers[0].StartupProbe = &corev1.Probe{}
	no := func(string, runtimestate.ContainerID) bool { return false }
	in := Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: runtimeOf("i=exit0"), Ready: no, Started: no, Terminal: true, Now: now}
	if a := Generate(in).ContainerStatuses[0].State.Waiting; a == nil || a.Reason != "PodInitializing" {
		t.Errorf("%+v", a)
	}
}

// In a new sandbox, an init container that ended well runs again; the API server refuses to hear that,
// unless its policy says so, and is told of the rest of the pod.
func TestInitContainersThatRunOnceMore(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy corev1.RestartPolicy
		code   int32
		rules  []corev1.ContainerRestartRule
		told   bool
	}{
		{name: "ended well", policy: corev1.RestartPolicyOnFailure},
		{name: "failed", policy: corev1.RestartPolicyOnFailure, code: 1, told: true},
		{name: "always", policy: corev1.RestartPolicyAlways, told: true},
		{name: "all start over", policy: corev1.RestartPolicyOnFailure, told: true, rules: []corev1.ContainerRestartRule{
			{Action: corev1.ContainerRestartRuleActionRestartAllContainers, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{9}}},
		}},
	} {
		pod := testPod(c.policy, "i", "a")
		pod.Spec.Containers[0].RestartPolicyRules = c.rules
		pod.Status.InitContainerStatuses = []core.ContainerStatus{{Name: "i",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: c.code}}}}
		ours := core.PodStatus{PodIP: "192.0.2.9", InitContainerStatuses: []core.ContainerStatus{
			{Name: "i", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}}
		got := acceptable(ours, pod)
		if told := got.InitContainerStatuses[0].State.Running != nil; told != c.told || got.PodIP != ours.PodIP {
			t.Errorf("%s: %+v", c.name, got)
		}
		if ours.InitContainerStatuses[0].RestartCount != 1 {
			t.Errorf("%s: what is known was changed", c.name)
		}
	}
}

// An ephemeral container runs once, by the API's rule, but a runtime may have lost what it knew.
func TestEphemeralContainersThatRunOnceMore(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "", "a")
	pod.Status.EphemeralContainerStatuses = []core.ContainerStatus{
		{Name: "runs"}, {Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}},
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	got := acceptable(core.PodStatus{EphemeralContainerStatuses: []core.ContainerStatus{{Name: "runs", State: running}, {Name: "ended", State: running}}}, pod)
	if of := got.EphemeralContainerStatuses; of[0].State.Running == nil || of[1].State.Terminated == nil || of[1].State.Running != nil {
		t.Errorf("%+v", of)
	}
}
