package podtopologyspread

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
	"kctl/proto/costtest"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func app(name string) func(*core.Pod) {
	return func(p *core.Pod) {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels["app"] = name
	}
}

func spread(key string, action corev1.UnsatisfiableConstraintAction, changes ...func(*corev1.TopologySpreadConstraint)) func(*core.Pod) {
	c := corev1.TopologySpreadConstraint{
		MaxSkew:           1,
		TopologyKey:       key,
		WhenUnsatisfiable: action,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
	for _, change := range changes {
		change(&c)
	}
	return func(p *core.Pod) { p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c) }
}

// node is a node in a zone with that many web pods.
func node(name, zone string, web int, changes ...func(*core.Node)) *framework.NodeInfo {
	var pods []*core.Pod
	for i := range web {
		pods = append(pods, fixture.Pod(fmt.Sprint(name, i), app("web"), fixture.On(name)))
	}
	return fixture.NodeInfo(fixture.Node(name, append(changes, fixture.Label("zone", zone))...), pods...)
}

func TestFilter(t *testing.T) {
	const no = corev1.DoNotSchedule
	skew := func(n int32) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = n }
	}
	minDomains := func(n int32) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.MinDomains = &n }
	}
	taints := func(c *corev1.TopologySpreadConstraint) {
		honor := corev1.NodeInclusionPolicyHonor
		c.NodeTaintsPolicy = &honor
	}
	ignoreAffinity := func(c *corev1.TopologySpreadConstraint) {
		ignore := corev1.NodeInclusionPolicyIgnore
		c.NodeAffinityPolicy = &ignore
	}
	byHash := func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"hash"} }
	pool := func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "a"} }
	inPool, tainted := fixture.Label("pool", "a"), fixture.Taint("k", "v", corev1.TaintEffectNoSchedule)
	unlabelled := fixture.NodeInfo(fixture.Node("bare"))
	gone := node("g", "a", 3)
	for _, p := range gone.Pods {
		now := metav1.Now()
		p.Pod.DeletionTimestamp = &now
	}
	web := func(changes ...func(*core.Pod)) *core.Pod { return fixture.Pod("p", append(changes, app("web"))...) }
	for name, test := range map[string]struct {
		pod    *core.Pod
		node   *framework.NodeInfo
		others []*framework.NodeInfo
		fits   bool
	}{
		"no constraint":           {web(), node("a", "a", 9), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"emptiest zone":           {web(spread("zone", no)), node("a", "a", 0), []*framework.NodeInfo{node("b", "b", 1)}, true},
		"fullest zone":            {web(spread("zone", no)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0)}, false},
		"zones are even":          {web(spread("zone", no)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 1)}, true},
		"zone of two nodes":       {web(spread("zone", no)), node("a1", "a", 0), []*framework.NodeInfo{node("a2", "a", 1), node("b", "b", 0)}, false},
		"larger skew":             {web(spread("zone", no, skew(2))), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"pod that does not count": {fixture.Pod("p", app("db"), spread("zone", no)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"another namespace": {web(spread("zone", no), func(p *core.Pod) { p.Namespace = "other" }), node("a", "a", 5),
			[]*framework.NodeInfo{node("b", "b", 0)}, true},
		"node without the label":   {web(spread("zone", no)), unlabelled, []*framework.NodeInfo{node("b", "b", 0)}, false},
		"preferred only":           {web(spread("zone", corev1.ScheduleAnyway)), node("a", "a", 9), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"too few domains":          {web(spread("zone", no, minDomains(3))), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 1)}, false},
		"enough domains":           {web(spread("zone", no, minDomains(2))), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 1)}, true},
		"tainted nodes count":      {web(spread("zone", no)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0, tainted)}, false},
		"tainted nodes do not":     {web(spread("zone", no, taints)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0, tainted)}, true},
		"other nodes do not count": {web(pool, spread("zone", no)), node("a", "a", 1, inPool), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"other nodes count":        {web(pool, spread("zone", no, ignoreAffinity)), node("a", "a", 1, inPool), []*framework.NodeInfo{node("b", "b", 0)}, false},
		"ending pods do not count": {web(spread("zone", no)), gone, []*framework.NodeInfo{node("b", "b", 0)}, true},
		"other label value": {web(spread("zone", no, byHash), func(p *core.Pod) { p.Labels = map[string]string{"hash": "2"} }), node("a", "a", 5),
			[]*framework.NodeInfo{node("b", "b", 0)}, true},
		"two constraints, one full": {web(spread("zone", no), spread(corev1.LabelHostname, no)), node("a1", "a", 1),
			[]*framework.NodeInfo{node("a2", "a", 0), node("b", "b", 1)}, false},
		"selector of all, none counts": {web(spread("zone", no, func(c *corev1.TopologySpreadConstraint) {
			c.LabelSelector = &metav1.LabelSelector{}
		})), node("a", "a", 5), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"invalid selector": {web(spread("zone", no, func(c *corev1.TopologySpreadConstraint) {
			c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Bogus"}}}
		})), node("a", "a", 0), nil, false},
	} {
		if status := plugintest.Filter(t.Context(), New(Options{}), test.pod, test.node, test.others...); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}

func TestScore(t *testing.T) {
	pod := fixture.Pod("p", app("web"), spread("zone", corev1.ScheduleAnyway))
	nodes := []*framework.NodeInfo{node("a", "a", 4), node("b", "b", 2), node("c", "c", 0), fixture.NodeInfo(fixture.Node("bare"))}
	scores, status := plugintest.Scores(t.Context(), New(Options{}), pod, nodes...)
	// 4, 2 and 0 pods times log(3+2) are 6, 3 and 0.
	if want := []int64{0, 50, 100, 0}; !status.IsSuccess() || !slices.Equal(scores, want) {
		t.Errorf("%v %v, want %v", scores, status.Reasons(), want)
	}
	if scores, _ := plugintest.Scores(t.Context(), New(Options{}), fixture.Pod("p"), nodes...); scores != nil {
		t.Errorf("a pod without constraints is scored %v", scores)
	}
}

// Pods without constraints get the profile's defaults, if they belong together
// with others.
func TestDefaultConstraints(t *testing.T) {
	webs := labels.SelectorFromSet(labels.Set{"app": "web"})
	of := func(pod *core.Pod) labels.Selector {
		if pod.Labels["app"] == "web" {
			return webs
		}
		return nil
	}
	list := func(action corev1.UnsatisfiableConstraintAction) Options {
		return Options{Selector: of, Defaults: []corev1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: action}}}
	}
	t.Run("required", func(t *testing.T) {
		full, free := node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0)}
		for name, test := range map[string]struct {
			pod  *core.Pod
			fits bool
		}{
			"counts":                       {fixture.Pod("p", app("web")), false},
			"its own come first":           {fixture.Pod("p", app("web"), spread("other", corev1.ScheduleAnyway)), true},
			"belongs together with nobody": {fixture.Pod("p", app("alone")), true},
		} {
			if status := plugintest.Filter(t.Context(), New(list(corev1.DoNotSchedule)), test.pod, full, free...); status.IsSuccess() != test.fits {
				t.Errorf("%s: %v", name, status.Reasons())
			}
		}
	})
	zoned := func(name, zone string, web int) *framework.NodeInfo {
		return node(name, zone, web, func(n *core.Node) {
			n.Labels[corev1.LabelHostname] = name
			if zone != "" {
				n.Labels[corev1.LabelTopologyZone] = zone
			}
		})
	}
	for name, test := range map[string]struct {
		options Options
		nodes   []*framework.NodeInfo
		want    []int64
	}{
		"listed": {list(corev1.ScheduleAnyway), []*framework.NodeInfo{node("a", "a", 4), node("b", "b", 0)}, []int64{0, 100}},
		// By host: 3 domains, log(5); by zone: 2 domains, log(4). And 2 and 4 for
		// the skews: 4 pods are 6.4+5.5+6=18, 0 and 4 are 12, 0 and 0 are 6.
		"system": {Options{System: true, Selector: of}, []*framework.NodeInfo{zoned("a1", "a", 4), zoned("a2", "a", 0), zoned("b", "b", 0)}, []int64{33, 66, 100}},
		// A node that is in no zone makes one more domain: log(5) by zone, and all
		// by log(5) by host: 4 pods are 13, and 6 for the skews: 19, 6 and 2 are what is turned round.
		"system, a zone is missing": {Options{System: true, Selector: of}, []*framework.NodeInfo{zoned("a", "a", 4), zoned("b", "b", 0), zoned("c", "", 0)},
			[]int64{10, 78, 100}},
		// The zones are unknown: only hosts count, and no node is left out.
		"system, no zones": {Options{System: true, Selector: of}, []*framework.NodeInfo{zoned("a", "", 4), zoned("b", "", 0)}, []int64{25, 100}},
	} {
		scores, status := plugintest.Scores(t.Context(), New(test.options), fixture.Pod("p", app("web")), test.nodes...)
		if !status.IsSuccess() || !slices.Equal(scores, test.want) {
			t.Errorf("%s: %v %v, want %v", name, scores, status.Reasons(), test.want)
		}
		if scores, _ := plugintest.Scores(t.Context(), New(test.options), fixture.Pod("p", app("alone")), test.nodes...); scores != nil {
			t.Errorf("%s: a pod without an owner is scored %v", name, scores)
		}
	}
}

// A pod waits for events of pods that its constraints count, and of no others.
func TestHints(t *testing.T) {
	hints := New(Options{}).EventsToRegister()
	inZone, bare := fixture.Node("n", fixture.Label("zone", "a")), fixture.Node("n")
	cordoned := bare.DeepCopy()
	cordoned.Spec.Unschedulable = true
	waits := framework.NewPodInfo(fixture.Pod("p", app("web"), spread("zone", corev1.DoNotSchedule)))
	for name, test := range map[string]struct {
		event framework.ClusterEvent
		want  bool
	}{
		"web came":     {framework.ClusterEvent{ActionType: framework.Add, NewPod: fixture.Pod("w", app("web"))}, true},
		"another came": {framework.ClusterEvent{ActionType: framework.Add, NewPod: fixture.Pod("w", app("db"))}, false},
		"web left":     {framework.ClusterEvent{ActionType: framework.Delete, OldPod: fixture.Pod("w", app("web"))}, true},
		"another left": {framework.ClusterEvent{ActionType: framework.Delete, OldPod: fixture.Pod("w", app("db"))}, false},
		"another became web": {framework.ClusterEvent{
			ActionType: framework.UpdatePodLabel, OldPod: fixture.Pod("w", app("db")), NewPod: fixture.Pod("w", app("web")),
		}, true},
		"web, somewhere else": {framework.ClusterEvent{ActionType: framework.Add, NewPod: fixture.Pod("w", app("web"), func(p *core.Pod) { p.Namespace = "other" })},
			false},
		"a node came":         {framework.ClusterEvent{ActionType: framework.Add, NewNode: inZone}, true},
		"one of no zone came": {framework.ClusterEvent{ActionType: framework.Add, NewNode: bare}, false},
		"a node left":         {framework.ClusterEvent{ActionType: framework.Delete, OldNode: inZone}, true},
		"it got a zone":       {framework.ClusterEvent{ActionType: framework.UpdateNodeLabel, OldNode: bare, NewNode: inZone}, true},
		"it lost its zone":    {framework.ClusterEvent{ActionType: framework.UpdateNodeLabel, OldNode: inZone, NewNode: bare}, true},
		"tainted":             {framework.ClusterEvent{ActionType: framework.UpdateNodeTaint, OldNode: inZone, NewNode: inZone}, false},
		"moved": {framework.ClusterEvent{
			ActionType: framework.UpdateNodeLabel | framework.UpdateNodeTaint,
			OldNode:    inZone,
			NewNode:    fixture.Node("n", fixture.Label("zone", "b")),
		}, true},
		"got another label": {framework.ClusterEvent{
			ActionType: framework.UpdateNodeLabel,
			OldNode:    inZone,
			NewNode:    fixture.Node("n", fixture.Label("zone", "a"), fixture.Label("b", "c")),
		}, false},
		"web was labelled": {framework.ClusterEvent{
			ActionType: framework.UpdatePodLabel,
			OldPod:     fixture.Pod("w", app("web")),
			NewPod:     fixture.Pod("w", app("web"), func(p *core.Pod) { p.Labels["b"] = "c" }),
		}, false},
		"cordoned, no zone": {framework.ClusterEvent{ActionType: framework.UpdateNodeTaint, OldNode: bare, NewNode: cordoned}, false},
	} {
		hint := hints[0]
		test.event.Resource = framework.AssignedPodEvent
		if test.event.OldNode != nil || test.event.NewNode != nil {
			hint, test.event.Resource = hints[1], framework.NodeEvent
		}
		if hint.Covers(waits, test.event) != test.want {
			t.Errorf("%s: want %v", name, test.want)
		}
	}
	own := func(change func(*core.Pod)) framework.ClusterEvent {
		after := waits.Pod.DeepCopy()
		change(after)
		return framework.ClusterEvent{
			Resource:   framework.PodEvent,
			ActionType: framework.UpdatePodLabel | framework.UpdatePodToleration,
			OldPod:     waits.Pod,
			NewPod:     after,
		}
	}
	tolerant := own(func(p *core.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })
	if hints[2].Covers(waits, tolerant) || !hints[2].Covers(waits, own(app("db"))) {
		t.Error("a toleration that no constraint asks for brings the pod back, or another label does not")
	}
	honor := corev1.NodeInclusionPolicyHonor
	waits.Pod.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
	tainted := fixture.Node("n", fixture.Label("zone", "a"), fixture.Taint("a", "b", corev1.TaintEffectNoSchedule))
	if !hints[1].Covers(waits, framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.UpdateNodeTaint, OldNode: inZone, NewNode: tainted}) ||
		!hints[2].Covers(waits, tolerant) {
		t.Error("taints that a constraint honors are passed over")
	}
}

// More constraints than sums are shared of decide as few do, each by itself.
func TestManyConstraints(t *testing.T) {
	const many = 2 * maxShared
	labelled := func(i int) (all []func(*core.Node)) {
		for k := range many {
			all = append(all, fixture.Label(fmt.Sprint("key", k), fmt.Sprint(i)))
		}
		return all
	}
	pod := fixture.Pod("p", app("web"))
	for k := range many {
		spread(fmt.Sprint("key", k), corev1.DoNotSchedule)(pod)
	}
	full, empty, bare := node("a", "a", 1, labelled(0)...), node("b", "b", 0, labelled(1)...), node("c", "c", 0)
	for _, test := range []struct {
		node *framework.NodeInfo
		fits bool
	}{{full, false}, {empty, true}, {bare, false}} {
		if status := plugintest.Filter(t.Context(), New(Options{}), pod, test.node, full, empty, bare); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", test.node.Node.Name, status.Reasons())
		}
	}
}

// A pod with thousands of constraints, or of keys in one, must not keep the scheduler from
// the others: what they cost grows no faster than their number.
func TestThousandsOfConstraints(t *testing.T) {
	state := &framework.CycleState{Nodes: []*framework.NodeInfo{node("a", "a", 0), node("b", "b", 0)}, Tallies: &framework.Tallies{}}
	for name, podWith := range map[string]func(int) *core.Pod{
		"constraints": func(number int) *core.Pod {
			pod := fixture.Pod("p", app("web"))
			for i := range number {
				spread(fmt.Sprintf("%s/%d", strings.Repeat("k", 100), i), corev1.DoNotSchedule)(pod)
			}
			return pod
		},
		"keys": func(number int) *core.Pod {
			pod := fixture.Pod("p", app("web"))
			keys := make([]string, number)
			for i := range keys {
				keys[i] = fmt.Sprint("k", i)
				pod.Labels[keys[i]] = ""
			}
			spread("zone", corev1.DoNotSchedule, func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = keys })(pod)
			return pod
		},
	} {
		t.Run(name, func(t *testing.T) {
			costtest.NotSquare(t, 1000, func(number int) func() {
				info := framework.NewPodInfo(podWith(number))
				return func() {
					if _, status := New(Options{}).PreFilter(t.Context(), state, info); !status.IsSuccess() {
						t.Fatal(status.Reasons())
					}
				}
			})
		})
	}
}
