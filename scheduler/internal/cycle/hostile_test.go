package cycle

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/queue"
)

// hostile are pods that our API server refuses and another may have stored, by
// what is wrong with them. word is part of the reason why the pod waits, "" if
// it is placed all the same.
var hostile = map[string]struct {
	change func(*core.Pod)
	word   string
}{
	"a selector's operator": {near(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Almost"}}}), "Almost"},
	"a selector without values": {near(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a",
		Operator: metav1.LabelSelectorOpIn}}}), "labelSelector"},
	"a selector's label":             {near(metav1.LabelSelector{MatchLabels: map[string]string{"a": strings.Repeat("x", 100)}}), "labelSelector"},
	"a namespace selector":           {elsewhere(metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}), "namespaceSelector"},
	"a selector, only preferred":     {fond(metav1.LabelSelector{MatchLabels: map[string]string{"a": "?"}}), "labelSelector"},
	"a spread constraint's selector": {spreadOver(metav1.LabelSelector{MatchLabels: map[string]string{"a": "?"}}), "?"},
	"a node affinity's operator":     {nodes("Almost", "1"), "didn't match Pod's node affinity"},
	"a node affinity's number":       {nodes(corev1.NodeSelectorOpGt, "many"), "didn't match Pod's node affinity"},
	"a node selector's label":        {func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"": "?"} }, "didn't match Pod's node affinity"},
	"impossible requests":            {fixture.Requests("cpu", "1000000"), "Insufficient cpu"},
	"requests beyond all numbers":    {fixture.Requests("memory", "9E", "cpu", "9E", "example.com/gpu", "99999999999999999999"), "Insufficient"},
	"negative requests":              {fixture.Requests("cpu", "-3", "memory", "-9E", "ephemeral-storage", "-1", "example.com/gpu", "-5"), ""},
	"a negative overhead":            {func(p *core.Pod) { p.Spec.Overhead = fixture.List("cpu", "-3") }, ""},
	"a thousand tolerations":         {func(p *core.Pod) { p.Spec.Tolerations = tolerations(1000) }, ""},
	"a thousand terms":               {func(p *core.Pod) { terms(p, 1000) }, ""},
	"a host port below none":         {fixture.HostPort("", "TCP", -1), ""},
	"a host port of no protocol":     {fixture.HostPort("300.1.1.1", "SMOKE", 80), "free ports"},
	"no containers":                  {func(p *core.Pod) { p.Spec.Containers = nil }, ""},
	"a lowest priority":              {fixture.Priority(-1 << 31), ""},
	"a skew of less than nothing": {func(p *core.Pod) {
		spreadOver(metav1.LabelSelector{})(p)
		p.Spec.TopologySpreadConstraints[0].MaxSkew = -1
	}, "topology spread constraints"},
	"a nominated node that is nobody": {func(p *core.Pod) { p.Status.NominatedNodeName = "nobody" }, ""},
}

func near(s metav1.LabelSelector) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone", LabelSelector: &s}}}}
	}
}

func elsewhere(s metav1.LabelSelector) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone", NamespaceSelector: &s}}}}
	}
}

func fond(s metav1.LabelSelector) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &s}}}}}
	}
}

func spreadOver(s metav1.LabelSelector) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &s}}
	}
}

func nodes(operator corev1.NodeSelectorOperator, value string) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: operator, Values: []string{value}}}}}}}}
	}
}

func tolerations(n int) (all []corev1.Toleration) {
	for i := range n {
		all = append(all, corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists})
	}
	return all
}

// terms adds n different anti-affinity terms to a pod.
func terms(p *core.Pod, n int) {
	anti := &corev1.PodAntiAffinity{}
	for i := range n {
		anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("other",
				i)}}})
	}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: anti}
}

// TestPodsThatNoServerShouldHaveStored: whatever is wrong with a pod, on a node
// or waiting, its status says so, it makes no work while nothing happens, lets
// no node be overcommitted, and holds up no other pod.
func TestPodsThatNoServerShouldHaveStored(t *testing.T) {
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			withScheduler(t, []*core.Node{fixture.Node("n1", fixture.Label("zone", "a"))}, func(t *testing.T, c *cluster, _ *running) {
				c.create(fixture.Pod("there", test.change, fixture.On("n1")))
				c.create(fixture.Pod("bad", test.change))
				synctest.Wait()
				if got := c.nodeOf("bad"); (got == "") != (test.word != "") || test.word != "" && !strings.Contains(c.said(), test.word) {
					t.Errorf("it is on %q; said:\n%s", got, c.said())
				}
				time.Sleep(2 * time.Minute)
				attempts := c.count()
				time.Sleep(queue.DefaultFlushAfter - 3*time.Minute)
				if n := c.count(); n > attempts+20 { // errors are retried, each every ten seconds at most
					t.Errorf("%d attempts while nothing happened", n-attempts)
				}
				// Pods with huge requests fill the node; all others leave it as it was.
				for i := range 5 {
					c.create(fixture.Pod(fmt.Sprint("plain", i), fixture.Requests("cpu", "1"), func(p *core.Pod) { p.Labels = map[string]string{"app": "plain"} }))
				}
				time.Sleep(time.Minute)
				placed := 0
				for i := range 5 {
					if c.nodeOf(fmt.Sprint("plain", i)) != "" {
						placed++
					}
				}
				if strings.Contains(test.word, "Insufficient") || name == "a namespace selector" {
					return // the existing one takes everything, or wants to be alone
				}
				if placed != 4 {
					t.Errorf("%d pods were placed where there is room for 4; said:\n%s", placed, c.said())
				}
			})
		})
	}
}

// TestNodesThatNoServerShouldHaveStored: a node with negative capacity, or with
// more than exists, gets no pods, or as many as it says.
func TestNodesThatNoServerShouldHaveStored(t *testing.T) {
	bad := []*core.Node{
		fixture.Node("negative", fixture.Allocatable("cpu", "-4", "memory", "-1", "pods", "-1")),
		fixture.Node("nothing", func(n *core.Node) { n.Status.Allocatable = nil }),
		fixture.Node("nameless-taint", fixture.Taint("", "", corev1.TaintEffectNoSchedule)),
		fixture.Node("huge", fixture.Allocatable("cpu", "9E", "memory", "9E", "pods", "3")),
	}
	withScheduler(t, bad, func(t *testing.T, c *cluster, _ *running) {
		for i := range 5 {
			c.create(fixture.Pod(fmt.Sprint("p", i), fixture.Requests("cpu", "1")))
		}
		time.Sleep(time.Minute)
		on := map[string]int{}
		for _, pod := range c.stored() {
			on[pod.Spec.NodeName]++
		}
		if on["huge"] != 3 || on[""] != 2 {
			t.Errorf("pods by node: %v; said:\n%s", on, c.said())
		}
		c.nodes.Apply(watch.Modified, fixture.Node("negative"))
		time.Sleep(time.Minute)
		if c.nodeOf("p4") == "" {
			t.Errorf("a node that was put right is not used; said:\n%s", c.said())
		}
	})
}

// TestPreemptionInAChainEnds: if every evicted pod is created again, as
// controllers do, the important pods end up on the nodes and nobody is evicted
// for nothing: the most important ones are never evicted, and each pod that is
// not placed in the end was evicted once at most.
func TestPreemptionInAChainEnds(t *testing.T) {
	var nodes []*core.Node
	for i := range 4 {
		nodes = append(nodes, fixture.Node(fmt.Sprint("n", i)))
	}
	withScheduler(t, nodes, func(t *testing.T, c *cluster, _ *running) {
		// Pods come in order of priority, the lowest first; each class could fill all
		// nodes.
		const classes = 5
		made := 0
		again := func(class int) {
			made++
			c.create(fixture.Pod(fmt.Sprintf("c%d-%d", class, made), fixture.Requests("cpu", "4"), fixture.Priority(int32(class))))
		}
		for class := range classes {
			for range len(nodes) {
				again(class)
			}
			for range 20 { // the controllers' rounds
				time.Sleep(15 * time.Second)
				there := map[int]int{}
				for _, pod := range c.stored() {
					if pod.DeletionTimestamp == nil {
						there[int(*pod.Spec.Priority)]++
					}
				}
				for of := range class + 1 {
					for range len(nodes) - there[of] {
						again(of)
					}
				}
			}
		}
		before := c.count()
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if strings.Count(c.said(), " leaves ") != (classes-1)*len(nodes) {
			t.Errorf("%d pods had to leave, want %d", strings.Count(c.said(), " leaves "), (classes-1)*len(nodes))
		}
		if now := c.count(); now > before+classes*len(nodes) {
			t.Errorf("%d attempts since everything was settled", now-before)
		}
		for _, pod := range c.stored() {
			if top := *pod.Spec.Priority == classes-1; top != (pod.Spec.NodeName != "") {
				t.Errorf("%s is on %q", pod.Name, pod.Spec.NodeName)
			}
		}
	})
}

// TestNobodyIsDrivenOutWhoIsNeeded: a pod with affinity to the pod that it
// would have to evict evicts nobody.
func TestNobodyIsDrivenOutWhoIsNeeded(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1", fixture.Label("zone", "a"))}, func(t *testing.T, c *cluster, _ *running) {
		c.create(resident("friend", "n1", "4", 0, 1))
		c.create(fixture.Pod("important", fixture.Requests("cpu", "4"), fixture.Priority(100),
			near(metav1.LabelSelector{MatchLabels: map[string]string{"app": "friend"}})))
		time.Sleep(20 * time.Minute)
		if !c.has("friend") || strings.Contains(c.said(), " leaves ") {
			t.Errorf("said:\n%s", c.said())
		}
	})
}
