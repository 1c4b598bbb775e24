package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// Changes of the node's conditions are reported in upstream's words, and
// nothing else is.
func TestConditionsThatChangeAreTold(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	told, short := &toldEvents{}, map[corev1.NodeConditionType]bool{}
	config := testConfig(t, client, clock.RealClock{})
	config.Events, config.UnderPressure = told, func(c corev1.NodeConditionType) bool { return short[c] }
	m := New(config)
	node := &core.Node{Status: m.status(&corev1.NodeStatus{}, state{})}
	for _, step := range []struct {
		condition corev1.NodeConditionType
		is        bool
		notReady  []string
		want      string
	}{
		{corev1.NodeMemoryPressure, true, nil, "NodeHasInsufficientMemory"},
		{corev1.NodeMemoryPressure, true, nil, ""},
		{corev1.NodeDiskPressure, true, nil, "NodeHasDiskPressure"},
		{corev1.NodeMemoryPressure, false, []string{"down"}, "NodeHasSufficientMemory NodeNotReady"},
		{corev1.NodeDiskPressure, false, nil, "NodeHasNoDiskPressure NodeReady"},
		{corev1.NodePIDPressure, true, nil, "NodeHasInsufficientPID"},
		{corev1.NodePIDPressure, false, nil, "NodeHasSufficientPID"},
	} {
		told.told, short[step.condition] = nil, step.is
		status := m.status(&node.Status, state{notReady: step.notReady})
		m.recordChanges(node, &node.Status, &status)
		node.Status = status
		if got := strings.ReplaceAll(strings.Join(told.told, " "), "Normal ", ""); got != step.want {
			t.Errorf("%s %v: %q, want %q", step.condition, step.is, got, step.want)
		}
	}
}

// The events when a node is registered, taken over by a kubelet, rebooted, and
// cordoned.
func TestARegisteredNodeIsToldOf(t *testing.T) {
	api, told := &nodeAPI{}, &toldEvents{}
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Transport: api})
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t, client, clock.RealClock{})
	config.Events, config.Machine.BootID = told, "this one"
	const enough = "Normal NodeHasSufficientMemory, Normal NodeHasNoDiskPressure, Normal NodeHasSufficientPID"
	for _, step := range []struct {
		name     string
		inAPI    func(node *core.Node) // as it was before
		notReady []string
		want     string
	}{
		{"new", nil, nil, enough + ", Normal NodeReady"},
		{"restarted", nil, nil, enough},
		{"rebooted, not ready", func(node *core.Node) { node.Status.NodeInfo.BootID = "before" }, []string{"down"},
			enough + ", Warning Rebooted, Normal NodeNotReady"},
		{"cordoned", func(node *core.Node) { node.Spec.Unschedulable = true }, nil, "Normal NodeNotSchedulable, " + enough + ", Normal NodeReady"},
	} {
		told.told, config.Runtime = nil, &fakeRuntime{notReady: step.notReady}
		if step.inAPI != nil {
			step.inAPI(api.node)
		}
		m := New(config)
		for range 2 { // the second time there is nothing to report
			if err := m.update(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(told.told, ", "); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
		if !m.Node().Spec.Unschedulable {
			continue
		}
		usable := m.Node().DeepCopy()
		usable.Spec.Unschedulable, usable.ResourceVersion = false, "2"
		m.setNode(usable)
		m.setNode(usable)
		if got := strings.Join(told.told, ", "); got != step.want+", Normal NodeSchedulable" {
			t.Errorf("uncordoned: %q", got)
		}
	}
}
