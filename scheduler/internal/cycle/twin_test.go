package cycle

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/internal/fixture"
)

// decided is what kube-scheduler v1.37.0 did in a small cluster of random nodes
// and pods, step by step (testdata/kube-scheduler-1.37-preemption.json).
// Victims did not end meanwhile.
type decided struct {
	Name      string
	Nodes     []twinNode
	Residents []twinPod
	Budgets   []struct {
		Name, App string
		Allowed   int32
		Disrupted []string
	}
	Steps []struct {
		Create                        *twinPod
		Taint, Cordon, Remove, Delete string
		// Want is the new state of the pods that the step changed.
		Want map[string]string
	}
}

type twinNode struct {
	Name, CPU, Memory, Zone string
	Taint                   corev1.TaintEffect
	Pods, GPU               int64
	Unschedulable           bool
}

type twinPod struct {
	Name, Node, CPU, Zone string
	App, Anti, With, Key  string
	Priority              int32
	Started               *int
	GPU                   int64
	Port, Spread          int32
	Never, Tolerates      bool
	Leaving               bool
}

// TestPreemptionAgreesWithKubeScheduler replays the recorded decisions of
// kube-scheduler.
func TestPreemptionAgreesWithKubeScheduler(t *testing.T) {
	recorded, err := os.ReadFile("testdata/kube-scheduler-1.37-preemption.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []decided
	if err := json.Unmarshal(recorded, &all); err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		t.Run(d.Name, func(t *testing.T) {
			var nodes []*core.Node
			for _, n := range d.Nodes {
				nodes = append(nodes, n.node())
			}
			withScheduler(t, nodes, func(t *testing.T, c *cluster, _ *running) { d.play(t, c, nodes) })
		})
	}
}

func (d *decided) play(t *testing.T, c *cluster, nodes []*core.Node) {
	c.lingering = true
	for _, b := range d.Budgets {
		pdb := budget(b.App)
		pdb.Name, pdb.Status.DisruptionsAllowed, pdb.Status.DisruptedPods = b.Name, b.Allowed, map[string]metav1.Time{}
		for _, name := range b.Disrupted {
			pdb.Status.DisruptedPods[name] = metav1.Time{}
		}
		c.budgets = append(c.budgets, pdb)
	}
	want := map[string]string{}
	for i := range d.Residents {
		pod := d.Residents[i].pod()
		c.create(pod)
		want[pod.Name] = c.whereabouts(pod)
	}
	for i, step := range d.Steps {
		if step.Create != nil {
			c.create(step.Create.pod())
		}
		if step.Delete != "" {
			c.delete(step.Delete)
		}
		for n, node := range nodes {
			changed := node.DeepCopy()
			switch node.Name {
			case step.Taint:
				changed.Spec.Taints = []corev1.Taint{{Key: "t", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
			case step.Cordon:
				changed.Spec.Unschedulable = true
			case step.Remove:
				c.nodes.Apply(watch.Deleted, changed)
				continue
			default:
				continue
			}
			nodes[n] = changed
			c.nodes.Apply(watch.Modified, changed.DeepCopy())
		}
		time.Sleep(25 * time.Second) // longer than any back-off; ten steps end before leftovers are flushed
		synctest.Wait()
		maps.Copy(want, step.Want)
		maps.DeleteFunc(want, func(_, what string) bool { return what == "gone" })
		got := map[string]string{}
		for name, pod := range c.stored() {
			got[name] = c.whereabouts(pod)
		}
		for name := range maps.Keys(want) {
			if got[name] != want[name] {
				t.Fatalf("step %d: %s\n  %s, want\n  %s", i, name, got[name], want[name])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("step %d: %v, want %v", i, got, want)
		}
	}
}

// whereabouts is a pod's state in the form that was recorded.
func (c *cluster) whereabouts(pod *core.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "leaves " + pod.Spec.NodeName
	case pod.Spec.NodeName != "":
		return "on " + pod.Spec.NodeName
	}
	waits := "waits"
	if pod.Status.NominatedNodeName != "" {
		waits += " for " + pod.Status.NominatedNodeName
	}
	for line := range strings.Lines(c.said()) {
		if words, about := strings.CutPrefix(strings.TrimSuffix(line, "\n"), pod.Name+": "); about {
			pod.Status.Message = words // the last one counts
		}
	}
	return waits + ": " + pod.Status.Message
}

func (n *twinNode) node() *core.Node {
	node := fixture.Node(n.Name)
	node.Status.Allocatable = fixture.List("cpu", n.CPU, "memory", n.Memory, "ephemeral-storage", "100Gi")
	count(node.Status.Allocatable, corev1.ResourcePods, n.Pods)
	count(node.Status.Allocatable, "example.com/gpu", n.GPU)
	if n.Zone != "" {
		node.Labels[corev1.LabelTopologyZone] = n.Zone
	}
	if n.Taint != "" {
		fixture.Taint("k", "v", n.Taint)(node)
	}
	node.Spec.Unschedulable = n.Unschedulable
	return node
}

func (p *twinPod) pod() *core.Pod {
	pod := fixture.Pod(p.Name, fixture.Requests("cpu", p.CPU), fixture.Priority(p.Priority), fixture.On(p.Node))
	pod.Labels = map[string]string{"app": p.App}
	count(pod.Spec.Containers[0].Resources.Requests, "example.com/gpu", p.GPU)
	if p.Started != nil {
		pod.Status.StartTime = &metav1.Time{Time: time.Date(2026, 1, 1, 0, *p.Started, 0, 0, time.UTC)}
	}
	if p.Leaving {
		pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	if p.Never {
		policy := corev1.PreemptNever
		pod.Spec.PreemptionPolicy = &policy
	}
	if p.Tolerates {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	if p.Zone != "" {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: p.Zone}
	}
	if p.Port != 0 {
		fixture.HostPort("", corev1.ProtocolTCP, p.Port)(pod)
	}
	if p.Spread != 0 {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: p.Spread, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: apps(p.App),
		}}
	}
	p.affinity(pod)
	return pod
}

func (p *twinPod) affinity(pod *core.Pod) {
	key := p.Key
	if key == "" {
		key = corev1.LabelHostname
	}
	pod.Spec.Affinity = &corev1.Affinity{}
	if p.Anti != "" {
		pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: apps(p.Anti), TopologyKey: key}},
		}
	}
	if p.With != "" {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: apps(p.With), TopologyKey: key}},
		}
	}
}

func apps(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func count(list corev1.ResourceList, name corev1.ResourceName, n int64) {
	if n != 0 {
		list[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
}
