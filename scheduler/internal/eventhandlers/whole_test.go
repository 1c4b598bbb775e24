package eventhandlers

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/waitingpods"
)

// Extenders and plugins of others may look at anything: they see pods and nodes as they
// are, and are asked again when something changed that the plugins of this program do not
// look at.
func TestWholeObjectsAreKeptCurrent(t *testing.T) {
	annotated := func(o metav1.Object) { o.SetAnnotations(map[string]string{"example.com/free": "1"}) }
	ready := func(n *core.Node, status corev1.ConditionStatus) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.Now()}}
	}
	for name, test := range map[string]struct {
		node func(*core.Node)
		pod  func(*core.Pod)
		want []string
	}{
		"a node's annotation": {node: func(n *core.Node) { annotated(n) }, want: []string{"cache node n1", "event NodeUpdateNodeAnnotation"}},
		"a node's condition": {node: func(n *core.Node) { ready(n, corev1.ConditionFalse) },
			want: []string{"cache node n1", "event NodeUpdateNodeCondition"}},
		"a node's condition that is gone": {node: func(n *core.Node) { n.Status.Conditions = nil },
			want: []string{"cache node n1", "event NodeUpdateNodeCondition"}},
		"a node's heartbeat": {node: func(n *core.Node) { ready(n, corev1.ConditionTrue) }, want: []string{"cache node n1"}},
		"a pod's annotation": {pod: func(p *core.Pod) { annotated(p) }, want: []string{"cache pod p on n1", "event AssignedPodUpdate"}},
		"a pod's phase":      {pod: phase(corev1.PodRunning), want: []string{"cache pod p on n1", "event AssignedPodUpdate"}},
		"a pod's requests":   {pod: fixture.Requests("cpu", "1"), want: []string{"cache pod p on n1", "event AssignedPodUpdatePodScaleDown"}},
	} {
		t.Run(name, func(t *testing.T) {
			node, pod := fixture.Node("n1"), fixture.Pod("p", fixture.On("n1"), fixture.Requests("cpu", "2"))
			ready(node, corev1.ConditionTrue)
			l := &log{names: map[types.UID]string{pod.UID: "p"}, known: map[types.UID]bool{}}
			h := New(t.Context(), Whole, l, l, nominator.New(), waitingpods.New(clock.RealClock{}))
			nodes, pods := h.Nodes(), h.Pods()
			nodes.Apply(watch.Added, node)
			pods.Apply(watch.Added, pod)
			l.lines = nil
			if test.node != nil {
				node = node.DeepCopy()
				test.node(node)
				nodes.Apply(watch.Modified, node)
			} else {
				pods.Apply(watch.Modified, changed(pod, test.pod))
			}
			if !slices.Equal(l.lines, test.want) {
				t.Errorf("said %q, want %q", l.lines, test.want)
			}
		})
	}
}
