package nodedeclaredfeatures

import (
	"strings"
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
		want string // "" where it fits
	}{
		"a plain pod, a plain node":     {plain, nil, ""},
		"a plain pod, a new node":       {plain, []string{restart}, ""},
		"a rule, a node that has it":    {restartsAll, []string{"A", restart, "Z"}, ""},
		"a rule, a node without":        {restartsAll, nil, restart},
		"a rule, a node with others":    {restartsAll, []string{users}, restart},
		"users, a node that has them":   {usersOfTheHost, []string{restart, users}, ""},
		"users, a node without":         {usersOfTheHost, []string{restart}, users},
		"both, a node with one of them": {func(p *core.Pod) { restartsAll(p); usersOfTheHost(p) }, []string{restart}, users},
	} {
		status := plugintest.Filter(t.Context(), New(), fixture.Pod("p", test.pod), fixture.NodeInfo(fixture.Node("n", declares(test.node...))))
		if status.IsSuccess() != (test.want == "") || !strings.HasSuffix(status.Message(), test.want) {
			t.Errorf("%s: %v %q, want %q", name, status.Code(), status.Message(), test.want)
		}
		if test.want != "" && status.Code() != framework.UnschedulableAndUnresolvable {
			t.Errorf("%s: pods would be asked to leave in vain: %v", name, status.Code())
		}
	}
}

func TestHints(t *testing.T) {
	old, updated := fixture.Node("n"), fixture.Node("n", declares(restart))
	if got := framework.NodeActions(old, updated); got != framework.UpdateNodeDeclaredFeatures {
		t.Errorf("the change is seen as %b", got)
	}
	hint := New().EventsToRegister()[0].Hint
	pod := framework.NewPodInfo(fixture.Pod("p", restartsAll))
	if !hint(pod, framework.Event{NewNode: updated}) || hint(pod, framework.Event{NewNode: old}) {
		t.Error("a pod is brought back by a node that does not help, or is not by one that does")
	}
}
