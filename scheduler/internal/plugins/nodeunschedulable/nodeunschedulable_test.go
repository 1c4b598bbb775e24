package nodeunschedulable

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func TestFilter(t *testing.T) {
	tolerating := func(t corev1.Toleration) func(*core.Pod) {
		return func(p *core.Pod) { p.Spec.Tolerations = []corev1.Toleration{t} }
	}
	cordoned := fixture.Node("n", func(n *core.Node) { n.Spec.Unschedulable = true })
	for name, test := range map[string]struct {
		node *core.Node
		pod  *core.Pod
		fits bool
	}{
		"open node":               {fixture.Node("n"), fixture.Pod("p"), true},
		"cordoned":                {cordoned, fixture.Pod("p"), false},
		"cordoned, tolerated":     {cordoned, fixture.Pod("p", tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})), true},
		"cordoned, all tolerated": {cordoned, fixture.Pod("p", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})), true},
		"cordoned, another taint": {cordoned, fixture.Pod("p", tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists})), false},
	} {
		if status := plugintest.Filter(t.Context(), New(), test.pod, fixture.NodeInfo(test.node)); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}
