package nodeunschedulable

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
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
		"open node": {fixture.Node("n"), fixture.Pod("p"), true},
		"cordoned":  {cordoned, fixture.Pod("p"), false},
		"cordoned, tolerated": {cordoned, fixture.Pod("p", tolerating(corev1.Toleration{
			Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})), true},
		"cordoned, all tolerated": {cordoned, fixture.Pod("p", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})), true},
		"cordoned, another taint": {cordoned, fixture.Pod("p", tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists})), false},
	} {
		if status := plugintest.Filter(t.Context(), New(), test.pod, fixture.NodeInfo(test.node)); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}

// Only a node that was cordoned, and no longer is, can help.
func TestHints(t *testing.T) {
	hint, pod := New().EventsToRegister()[0], framework.NewPodInfo(fixture.Pod("p"))
	open, closed := fixture.Node("n"), fixture.Node("n", func(n *core.Node) { n.Spec.Unschedulable = true })
	for name, test := range map[string]struct {
		before, after *core.Node
		want          bool
	}{
		"came open":           {nil, open, true},
		"came closed":         {nil, closed, false},
		"opened":              {closed, open, true},
		"closed":              {open, closed, false},
		"open, another taint": {open, fixture.Node("n", fixture.Taint("k", "v", corev1.TaintEffectNoSchedule)), false},
	} {
		event := framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.UpdateNodeTaint, OldNode: test.before, NewNode: test.after}
		if hint.Covers(pod, event) != test.want {
			t.Errorf("%s: want %v", name, test.want)
		}
	}
	for key, want := range map[string]bool{corev1.TaintNodeUnschedulable: true, "other": false} {
		tolerant := fixture.Pod("p", func(p *core.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
		})
		event := framework.ClusterEvent{Resource: framework.PodEvent, ActionType: framework.UpdatePodToleration, OldPod: pod.Pod, NewPod: tolerant}
		if New().EventsToRegister()[1].Covers(pod, event) != want {
			t.Errorf("tolerates %s: want %v", key, want)
		}
	}
}
