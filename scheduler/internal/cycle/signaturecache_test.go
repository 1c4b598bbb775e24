package cycle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/nominator"
)

// Whatever is cached for similar pods, each attempt finds the same nodes, with
// the same scores and refusals, as one without the cache, while pods come and
// go, and nodes come, go and change.
func TestWhatIsRememberedHolds(t *testing.T) {
	p := defaultProfile(t, withNamespaces)
	asked, remembered, refused := 0, 0, 0
	for seed := range uint64(30) {
		d := dice{rand.New(rand.NewPCG(seed, 13))}
		c := cache.New(clock.RealClock{}, cache.DefaultExpiry)
		var nodes []*core.Node
		for i := range []int{20, 150}[d.IntN(2)] { // among so many, a search does not see all
			nodes = append(nodes, d.node(i))
			c.SetNode(nodes[i])
		}
		remembers, forgets := testPlacer(), testPlacer()
		kinds := d.kinds(maxSignatures + 3)
		var bound []*core.Pod
		for i := range 150 {
			pod := d.pod(i)
			pod.Namespace, pod.Labels, pod.Spec = again(kinds[min(d.IntN(len(kinds)), d.IntN(len(kinds)))])
			forgets.filterCache, forgets.scoreCache = signatureCache[*framework.Status]{}, scoreCache{}
			got, want := place(t, c, remembers, p, pod), place(t, c, forgets, p, pod)
			if got != want {
				t.Fatalf("seed %d, pod %d: with the cache\n%s, without\n%s, %+v", seed, i, got, want, pod.Spec)
			}
			asked += len(remembers.scoreCache.missing)
			remembered += len(remembers.feasible) - len(remembers.scoreCache.missing)
			if len(remembers.feasible) == 0 {
				refused++
			} else {
				pod.Spec.NodeName = remembers.feasible[0].Name()
				bound = append(bound, pod)
				c.SetPod(pod)
			}
			if len(bound) > 0 && d.once(3) {
				c.RemovePod(bound[0].UID)
				bound = bound[1:]
			}
			if at := d.IntN(len(nodes)); d.once(3) {
				nodes[at] = d.node(at) // with other labels, taints and sizes
				c.SetNode(nodes[at])
			} else if d.once(10) {
				c.RemoveNode(nodes[at].Name)
				nodes = slices.Delete(nodes, at, at+1)
			}
		}
	}
	if remembered < asked || asked == 0 || refused == 0 {
		t.Errorf("of %d scores %d were remembered, and %d pods found no node: the test proves less than it says", asked+remembered, remembered, refused)
	}
}

func testPlacer() *placer {
	p := newPlacer(nominator.New(), nil, newPoints(metrics.New(), clock.RealClock{}), zap.NewNop())
	p.random = func(int) int { return 0 }
	return p
}

// place returns the whole result of an attempt.
func place(t *testing.T, c *cache.Cache, p *placer, profile *framework.Profile, pod *core.Pod) string {
	t.Helper()
	c.Update(p.snapshot)
	p.feasible, p.scores.Totals = p.feasible[:0], p.scores.Totals[:0]
	p.scoreCache.missing = p.scoreCache.missing[:0]
	result, err := p.schedulePod(t.Context(), profile, framework.NewCycleState(&relay.Stamps{}), framework.NewPodInfo(pod), func(relay.Hop) {})
	text := fmt.Sprintf("%+v, %v, %v", result, err, p.scores.Totals)
	for _, node := range p.feasible {
		text += " " + node.Name()
	}
	return text
}

func TestPodsAreAlikeInWhatPluginsLookAt(t *testing.T) {
	base := func() *core.Pod {
		return fixture.Pod("p", fixture.Requests("cpu", "100m"), fixture.HostPort("", "TCP", 80))
	}
	p := defaultProfile(t, withNamespaces)
	var plugins []framework.Plugin
	for _, plugin := range p.Filter {
		plugins = append(plugins, plugin)
	}
	for _, plugin := range p.Score {
		plugins = append(plugins, plugin.Score)
	}
	// A difference must change the signature of each plugin that looks at it.
	sign := func(pod *core.Pod) map[string]string {
		all := map[string]string{}
		for _, plugin := range plugins {
			if signing, signs := plugin.(framework.Sign); signs {
				var s framework.Signature
				signing.SignPod(framework.NewPodInfo(pod), &s)
				all[plugin.Name()] = string(s)
			}
		}
		return all
	}
	same := base()
	same.Name, same.UID, same.Labels, same.Spec.Containers[0].Image = "q", "another", map[string]string{"pod-template-hash": "x"}, "other"
	if !maps.Equal(sign(same), sign(base())) {
		t.Error("pods that differ in nothing that plugins look at are not alike")
	}
	toleration := func(t corev1.Toleration) func(*core.Pod) {
		return func(p *core.Pod) { p.Spec.Tolerations = []corev1.Toleration{t} }
	}
	affinity := func(terms ...corev1.NodeSelectorTerm) func(*core.Pod) {
		return func(p *core.Pod) {
			required := &corev1.NodeSelector{NodeSelectorTerms: terms}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		}
	}
	exists := corev1.NodeSelectorRequirement{Key: "a", Operator: "Exists"}
	seen := map[string]string{} // by plugin and signature
	for name, change := range map[string]func(*core.Pod){
		"NodeResourcesFit request":                fixture.Requests("cpu", "101m"),
		"NodeResourcesFit another resource":       fixture.Requests("cpu", "100m", "example.org/fpga", "1"),
		"NodeResourcesBalancedAllocation request": fixture.Requests("cpu", "101m"),
		"NodeResourcesFit pod's own": func(p *core.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: fixture.List("cpu", "102m")}
		},
		"NodePorts protocol":          fixture.HostPort("", "UDP", 80),
		"NodePorts address":           fixture.HostPort("10.0.0.1", "TCP", 80),
		"NodePorts port":              fixture.HostPort("", "TCP", 81),
		"NodeName node":               fixture.On("n"),
		"NodeAffinity selector":       func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"a": "bc"} },
		"NodeAffinity other selector": func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"ab": "c"} },
		"NodeAffinity no term":        affinity(),
		"NodeAffinity expressions":    affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{exists}}),
		"NodeAffinity fields":         affinity(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{exists}}),
		"NodeAffinity a term that says nothing": affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{exists}},
			corev1.NodeSelectorTerm{}),
		"TaintToleration key":                              toleration(corev1.Toleration{Key: "k"}),
		"TaintToleration operator":                         toleration(corev1.Toleration{Key: "k", Operator: "Exists"}),
		"TaintToleration value":                            toleration(corev1.Toleration{Key: "k", Value: "v"}),
		"TaintToleration effect":                           toleration(corev1.Toleration{Key: "k", Effect: "NoExecute"}),
		"NodeUnschedulable toleration of what is cordoned": toleration(corev1.Toleration{Key: corev1.TaintNodeUnschedulable}),
	} {
		other := base()
		change(other)
		plugin, _, _ := strings.Cut(name, " ")
		signature := sign(other)[plugin]
		if signature == sign(base())[plugin] {
			t.Errorf("%s makes no difference", name)
		}
		if like, known := seen[plugin+signature]; known {
			t.Errorf("%s is taken for %s", name, like)
		}
		seen[plugin+signature] = name
	}
}
