package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/field"
	"kctl/proto/core"
)

func fromYAML(t *testing.T, text string) *core.Node {
	t.Helper()
	n := new(core.Node)
	if err := yaml.UnmarshalStrict([]byte(text), n); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	setDefaults(n)
	return n
}

func expect(t *testing.T, what string, errs field.ErrorList, want string) {
	t.Helper()
	got := ""
	if err := errs.ToAggregate(); err != nil {
		got = err.Error()
	}
	if want == "" && got != "" || !strings.HasPrefix(got, want) {
		t.Errorf("%s\n  got: %s\n want: %s", what, got, want)
	}
}

func TestValidate(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "",
		"{spec: {podCIDR: 10.0.0.0/24}, status: {capacity: {cpu: 2, memory: 1Gi, pods: 110, hugepages-2Mi: 0}}}": "",
		"{spec: {podCIDRs: [10.0.0.0/24, 'fd00::/64']}}":                                                         "",
		"{spec: {podCIDRs: [10.0.0.0/24, 10.0.1.0/24]}}":                                                         "spec.podCIDRs: Invalid value: ",
		"{spec: {podCIDR: x}}": "spec.podCIDRs[0]: Invalid value: \"x\"",
		"{spec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]}}": "metadata.taints[1]: Duplicate value: ",
		"{spec: {taints: [{key: a}]}}":             "metadata.taints[0].effect: Required value",
		"{spec: {taints: [{key: a, effect: Go}]}}": `metadata.taints[0].effect: Unsupported value: "Go"`,
		"{status: {capacity: {cpu: -1}}}":          `[status.capacity.cpu: Invalid value: "-1"`,
		"{status: {allocatable: {pods: 1500m}}}":   `status.allocatable.pods: Invalid value: "1500m": must be an integer`,
	} {
		expect(t, text, validate(fromYAML(t, text), nil), want)
	}
	for status, want := range map[string]string{
		"{nodeInfo: {swap: {capacity: 1}}, declaredFeatures: [A, B/c2]}": "",
		"{nodeInfo: {swap: {capacity: 0}}}":                              "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero",
		"{declaredFeatures: [B, A]}":                                     `status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically`,
		"{declaredFeatures: [A, A]}":                                     `status.declaredFeatures[1]: Duplicate value: "A"`,
		"{declaredFeatures: [A/]}":                                       `status.declaredFeatures[0]: Invalid value: "A/": invalid feature name "A/": must start with`,
	} {
		n := fromYAML(t, "{status: "+status+"}")
		expect(t, status, validateCreate(n), want)
		expect(t, status, validateStatus(t.Context(), n, &core.Node{}), want)
	}
	old := fromYAML(t, "{status: {nodeInfo: {swap: {capacity: 0}}}}")
	expect(t, "no swap, as before", validateStatus(t.Context(), old, old), "")
}

func TestUpdate(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{"{}", "{spec: {podCIDR: 10.0.0.0/24, providerID: x, unschedulable: true}}", ""},
		{"{spec: {podCIDR: 10.0.0.0/24}}", "{spec: {podCIDR: 10.0.1.0/24}}", "spec.podCIDRs: Forbidden: node updates may not change podCIDR"},
		{"{spec: {providerID: a}}", "{spec: {providerID: b}}", "spec.providerID: Invalid value: null: field cannot be modified once set"},
		{"{spec: {providerID: a}}", "{spec: {}}", "spec.providerID: Invalid value: null: field cannot be cleared once set"},
		{"{}", "{spec: {externalID: a}}", "spec.externalID: Forbidden: may not be updated"},
	} {
		expect(t, c.now, validateUpdate(t.Context(), fromYAML(t, c.now), fromYAML(t, c.old)), c.want)
	}
	twice := fromYAML(t, "{status: {addresses: [{type: InternalIP, address: 1.2.3.4}, {type: InternalIP, address: 1.2.3.4}]}}")
	expect(t, "the same address twice", validateStatus(t.Context(), twice, twice), "status.addresses[1]: Duplicate value: ")
}

func TestDefaults(t *testing.T) {
	n := fromYAML(t, "{spec: {podCIDRs: [10.0.0.0/24]}, status: {capacity: {cpu: 2}}}")
	if n.Spec.PodCIDR != "10.0.0.0/24" || n.Status.Allocatable.Cpu().Value() != 2 {
		t.Errorf("defaulted node is %+v", n)
	}
}

func TestPodCIDRs(t *testing.T) {
	n := fromYAML(t, "{spec: {podCIDR: 10.0.1.0/24, podCIDRs: [10.0.0.0/24, 'fd00::/64']}}")
	if got := fmt.Sprint(n.Spec.PodCIDRs); got != "[10.0.1.0/24]" {
		t.Errorf("podCIDRs that differ from podCIDR became %s", got)
	}
}

func TestColumns(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	n := fromYAML(t, `
metadata: {name: n1, labels: {node-role.kubernetes.io/worker: "", node-role.kubernetes.io/control-plane: ""}}
spec: {unschedulable: true}
status:
  conditions: [{type: Ready, status: "True"}]
  addresses: [{type: InternalIP, address: 10.1.2.3}]
  nodeInfo: {kubeletVersion: v1.37.2, osImage: Debian, kernelVersion: "", containerRuntimeVersion: containerd}
`)
	n.CreationTimestamp = metav1.NewTime(now.Add(-25 * time.Hour))
	cells := row(n, now)
	if len(cells) != len(columns()) {
		t.Fatalf("%d cells in %d columns", len(cells), len(columns()))
	}
	want := "[n1 Ready,SchedulingDisabled control-plane,worker 25h v1.37.2 10.1.2.3 <none> Debian <unknown> containerd]"
	if got := fmt.Sprint(cells); got != want {
		t.Errorf("row is %s\n    want %s", got, want)
	}
	for conditions, want := range map[corev1.ConditionStatus]string{corev1.ConditionFalse: "NotReady", corev1.ConditionUnknown: "NotReady"} {
		n := &core.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: conditions}}}}
		if got := status(n); got != want {
			t.Errorf("Ready=%s is shown as %s, want %s", conditions, got, want)
		}
	}
	if got := status(&core.Node{}); got != "Unknown" {
		t.Errorf("a node without conditions is shown as %s", got)
	}
}
