package nodedeclaredfeatures

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func restartsAll(p *core.Pod) {
	never := corev1.ContainerRestartPolicyNever
	p.Spec.Containers[0].RestartPolicy = &never
	p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{1}},
	}}
}

func usersOfTheHost(p *core.Pod) {
	no := false
	p.Spec.HostNetwork, p.Spec.HostUsers = true, &no
}

func declares(features ...string) func(*core.Node) {
	return func(n *core.Node) { n.Status.DeclaredFeatures = features }
}

const (
	restart = "RestartAllContainersOnContainerExits"
	users   = "UserNamespacesHostNetworkSupport"
)

func TestFilter(t *testing.T) {
	plain := func(*core.Pod) {}
	for name, test := range map[string]struct {
		pod  func(*core.Pod)
		node []string
		fits bool
	}{
		"a plain pod, a plain node":     {plain, nil, true},
		"a plain pod, a new node":       {plain, []string{restart}, true},
		"a rule, a node that has it":    {restartsAll, []string{"A", restart, "Z"}, true},
		"a rule, a node without":        {restartsAll, nil, false},
		"a rule, a node with others":    {restartsAll, []string{users}, false},
		"users, a node that has them":   {usersOfTheHost, []string{restart, users}, true},
		"users, a node without":         {usersOfTheHost, []string{restart}, false},
		"both, a node with one of them": {func(p *core.Pod) { restartsAll(p); usersOfTheHost(p) }, []string{restart}, false},
	} {
		status := plugintest.Filter(t.Context(), New(), fixture.Pod("p", test.pod), fixture.NodeInfo(fixture.Node("n", declares(test.node...))))
		if status.IsSuccess() != test.fits {
			t.Errorf("%s: %v %q", name, status.Code(), status.Message())
		}
		if !test.fits && (status.Code() != framework.UnschedulableAndUnresolvable || status.Message() != "node(s) didn't match Pod's required features") {
			t.Errorf("%s: neither upstream's words nor a reason to evict nobody: %v %q", name, status.Code(), status.Message())
		}
	}
}

func TestHints(t *testing.T) {
	old, updated := fixture.Node("n"), fixture.Node("n", declares(restart))
	if got := framework.NodeActions(old, updated); got != framework.UpdateNodeDeclaredFeatures {
		t.Errorf("the change is seen as %b", got)
	}
	hint := New().EventsToRegister()[0].QueueingHintFn
	pod := framework.NewPodInfo(fixture.Pod("p", restartsAll))
	if !hint(pod, framework.ClusterEvent{NewNode: updated}) || hint(pod, framework.ClusterEvent{NewNode: old}) {
		t.Error("a pod is brought back by a node that does not help, or is not by one that does")
	}
}
