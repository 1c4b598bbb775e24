package interpodaffinity

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func newPlugin() *Plugin {
	return New(Options{HardPodAffinityWeight: 1}, func(name string) labels.Set {
		return map[string]labels.Set{"prod-1": {"env": "prod"}, "test-1": {"env": "test"}}[name]
	})
}

func labelled(pairs ...string) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func in(namespace string) func(*core.Pod) { return func(p *core.Pod) { p.Namespace = namespace } }

func term(app, key string, changes ...func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	for _, change := range changes {
		change(&t)
	}
	return t
}

func affinity(p *core.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	}
	return p.Spec.Affinity
}

func with(terms ...corev1.PodAffinityTerm) func(*core.Pod) {
	return func(p *core.Pod) {
		affinity(p).PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = terms
	}
}

func without(terms ...corev1.PodAffinityTerm) func(*core.Pod) {
	return func(p *core.Pod) {
		affinity(p).PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = terms
	}
}

func prefers(weight int32, t corev1.PodAffinityTerm) func(*core.Pod) {
	return func(p *core.Pod) {
		a := affinity(p).PodAffinity
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	}
}

func avoids(weight int32, t corev1.PodAffinityTerm) func(*core.Pod) {
	return func(p *core.Pod) {
		a := affinity(p).PodAntiAffinity
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	}
}

func node(name, zone string, pods ...*core.Pod) *framework.NodeInfo {
	return fixture.NodeInfo(fixture.Node(name, fixture.Label("zone", zone)), pods...)
}

func TestFilter(t *testing.T) {
	pod := func(changes ...func(*core.Pod)) *core.Pod { return fixture.Pod("p", changes...) }
	db, web := labelled("app", "db"), labelled("app", "web")
	prod := func(t *corev1.PodAffinityTerm) {
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	}
	everywhere := func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} }
	named := func(t *corev1.PodAffinityTerm) { t.Namespaces = []string{"test-1"} }
	// As the API server stores it for a pod that is created with hash=1.
	sameHash := func(t *corev1.PodAffinityTerm) {
		t.MatchLabelKeys = []string{"hash"}
		t.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "hash", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}}}
	}
	const host = corev1.LabelHostname
	for name, test := range map[string]struct {
		pod    *core.Pod
		node   *framework.NodeInfo
		others []*framework.NodeInfo
		reason string
	}{
		"nothing said":                {pod(), node("a", "a", pod(db)), nil, ""},
		"with db, it is here":         {pod(with(term("db", "zone"))), node("a", "a", pod(db)), nil, ""},
		"with db, it is in this zone": {pod(with(term("db", "zone"))), node("a1", "a"), []*framework.NodeInfo{node("a2", "a", pod(db))}, ""},
		"with db, it is on another host": {pod(with(term("db", host))), node("a1", "a"), []*framework.NodeInfo{node("a2", "a", pod(db))},
			"node(s) didn't match pod affinity rules"},
		"with db, it is nowhere": {pod(with(term("db", "zone"))), node("a", "a"), nil, "node(s) didn't match pod affinity rules"},
		"with db and cache, on one pod": {pod(with(term("db", "zone"), term("cache", "zone"))), node("a", "a", pod(db), pod(labelled("app", "cache"))), nil,
			"node(s) didn't match pod affinity rules"},
		"with its own kind, the first": {pod(web, with(term("web", "zone"))), node("a", "a"), nil, ""},
		"with its own kind, not the first": {pod(web, with(term("web", "zone"))), node("a", "a"), []*framework.NodeInfo{node("b", "b", pod(web))},
			"node(s) didn't match pod affinity rules"},
		"with its own kind, no such label": {pod(web, with(term("web", "rack"))), node("a", "a"), nil, "node(s) didn't match pod affinity rules"},
		"without db, it is here":           {pod(without(term("db", "zone"))), node("a", "a", pod(db)), nil, "node(s) didn't match pod anti-affinity rules"},
		"without db, it is in this zone": {pod(without(term("db", "zone"))), node("a1", "a"), []*framework.NodeInfo{node("a2", "a", pod(db))},
			"node(s) didn't match pod anti-affinity rules"},
		"without db, it is on another host": {pod(without(term("db", host))), node("a1", "a"), []*framework.NodeInfo{node("a2", "a", pod(db))}, ""},
		"without db, the node has no label": {pod(without(term("db", "rack"))), node("a", "a", pod(db)), nil, ""},
		"a running pod won't have it": {pod(web), node("a1", "a"), []*framework.NodeInfo{node("a2", "a", pod(without(term("web", "zone"))))},
			"node(s) didn't satisfy existing pods anti-affinity rules"},
		"a running pod won't have another": {pod(web), node("a1", "a"), []*framework.NodeInfo{node("a2", "a", pod(without(term("db", "zone"))))}, ""},
		"another namespace":                {pod(without(term("db", "zone"))), node("a", "a", pod(db, in("prod-1"))), nil, ""},
		"namespaces by label": {pod(without(term("db", "zone", prod))), node("a", "a", pod(db, in("prod-1"))), nil,
			"node(s) didn't match pod anti-affinity rules"},
		"namespaces by label, another":     {pod(without(term("db", "zone", prod))), node("a", "a", pod(db, in("test-1"))), nil, ""},
		"namespaces by label, not its own": {pod(without(term("db", "zone", prod))), node("a", "a", pod(db)), nil, ""},
		"all namespaces": {pod(without(term("db", "zone", everywhere))), node("a", "a", pod(db, in("who-knows"))), nil,
			"node(s) didn't match pod anti-affinity rules"},
		"namespaces by name": {pod(without(term("db", "zone", named))), node("a", "a", pod(db, in("test-1"))), nil,
			"node(s) didn't match pod anti-affinity rules"},
		"its own replica set, the same": {pod(labelled("app", "web", "hash", "1"), without(term("web", "zone", sameHash))),
			node("a", "a", pod(labelled("app", "web", "hash", "1"))), nil, "node(s) didn't match pod anti-affinity rules"},
		"its replica set when it was made": {pod(labelled("app", "web", "hash", "2"), without(term("web", "zone", sameHash))),
			node("a", "a", pod(labelled("app", "web", "hash", "1"))), nil, "node(s) didn't match pod anti-affinity rules"},
		"no selector is about nothing": {pod(without(corev1.PodAffinityTerm{TopologyKey: "zone"})), node("a", "a", pod(db)), nil, ""},
		"an invalid selector is said so": {pod(without(corev1.PodAffinityTerm{
			TopologyKey:   "zone",
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Bogus"}}},
		})), node("a", "a"), nil,
			`pod affinity term for zone: labelSelector: "Bogus" is not a valid label selector operator`},
		"preferences refuse nothing":         {pod(avoids(100, term("db", "zone"))), node("a", "a", pod(db)), nil, ""},
		"a running pod's preference neither": {pod(web), node("a", "a", pod(avoids(100, term("web", "zone")))), nil, ""},
	} {
		if status := plugintest.Filter(t.Context(), newPlugin(), test.pod, test.node, test.others...); status.Message() != test.reason {
			t.Errorf("%s: %q, want %q", name, status.Message(), test.reason)
		}
	}
}

func TestScore(t *testing.T) {
	db, web := labelled("app", "db"), labelled("app", "web")
	pod := func(changes ...func(*core.Pod)) *core.Pod { return fixture.Pod("p", changes...) }
	plain := []*framework.NodeInfo{node("a", "a", pod(db)), node("b", "b"), node("c", "c", pod(web))}
	for name, test := range map[string]struct {
		pod   *core.Pod
		nodes []*framework.NodeInfo
		want  []int64
	}{
		"nothing said":                   {pod(), plain, nil},
		"would be with db":               {pod(prefers(10, term("db", "zone"))), plain, []int64{100, 0, 0}},
		"would not be with web":          {pod(avoids(10, term("web", "zone"))), plain, []int64{100, 100, 0}},
		"both":                           {pod(prefers(10, term("db", "zone")), avoids(10, term("web", "zone"))), plain, []int64{100, 50, 0}},
		"a running pod would have it":    {pod(web), []*framework.NodeInfo{node("a", "a", pod(prefers(5, term("web", "zone")))), node("b", "b")}, []int64{100, 0}},
		"a running pod would not have":   {pod(web), []*framework.NodeInfo{node("a", "a", pod(avoids(5, term("web", "zone")))), node("b", "b")}, []int64{0, 100}},
		"a running pod must be with it":  {pod(web), []*framework.NodeInfo{node("a", "a", pod(with(term("web", "zone")))), node("b", "b")}, []int64{100, 0}},
		"the same for all is no matter ": {pod(prefers(10, term("db", "zone"))), plain[:1], []int64{0}},
	} {
		scores, status := plugintest.Scores(t.Context(), newPlugin(), test.pod, test.nodes...)
		if !status.IsSuccess() || !slices.Equal(scores, test.want) {
			t.Errorf("%s: %v %v, want %v", name, scores, status.Reasons(), test.want)
		}
	}
}

// Existing pods' terms are ignored for a pod without preferences of its own.
func TestScoreIgnoringExisting(t *testing.T) {
	web := labelled("app", "web")
	nodes := []*framework.NodeInfo{
		node("a", "a", fixture.Pod("p", avoids(5, term("web", "zone")))), node("b", "b"), node("c", "c", fixture.Pod("p", with(term("web", "zone")))),
	}
	plugin := New(Options{HardPodAffinityWeight: 5, IgnorePreferredTermsOfExistingPods: true}, nil)
	for name, test := range map[string]struct {
		pod  *core.Pod
		want []int64
	}{
		"without preferences": {fixture.Pod("p", web), nil},
		"with preferences":    {fixture.Pod("p", web, prefers(10, term("db", "zone"))), []int64{0, 50, 100}},
	} {
		scores, status := plugintest.Scores(t.Context(), plugin, test.pod, nodes...)
		if !status.IsSuccess() || !slices.Equal(scores, test.want) {
			t.Errorf("%s: %v %v, want %v", name, scores, status.Reasons(), test.want)
		}
	}
}

func TestHints(t *testing.T) {
	hint := newPlugin().EventsToRegister()[0]
	waits := framework.NewPodInfo(fixture.Pod("p", labelled("app", "web"), with(term("db", "zone")),
		without(term("noisy", "zone"), term("smelly", corev1.LabelHostname))))
	for name, test := range map[string]struct {
		event framework.ClusterEvent
		want  bool
	}{
		"db came": {framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Add, NewPod: fixture.Pod("d", labelled("app", "db"))},
			true},
		"another came": {framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Add, NewPod: fixture.Pod("w", labelled("app", "web"))},
			false},
		"another left": {framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: fixture.Pod("w")}, false},
		// The first pod of its kind may go anywhere, and db may have been the last
		// one.
		"db left": {framework.ClusterEvent{
			Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: fixture.Pod("d", labelled("app", "db")),
		}, true},
		"one it avoids left": {framework.ClusterEvent{
			Resource:   framework.AssignedPodEvent,
			ActionType: framework.Delete,
			OldPod:     fixture.Pod("n", labelled("app", "noisy")),
		}, true},
		"one that did not want it left": {framework.ClusterEvent{
			Resource:   framework.AssignedPodEvent,
			ActionType: framework.Delete,
			OldPod:     fixture.Pod("w", without(term("web", "zone"))),
		}, true},
		"one that did not want others left": {framework.ClusterEvent{
			Resource:   framework.AssignedPodEvent,
			ActionType: framework.Delete,
			OldPod:     fixture.Pod("w", without(term("x", "zone"))),
		}, false},
		"noisy is labelled": {framework.ClusterEvent{
			Resource:   framework.AssignedPodEvent,
			ActionType: framework.UpdatePodLabel,
			OldPod:     fixture.Pod("n", labelled("app", "noisy")),
			NewPod:     fixture.Pod("n", labelled("app", "noisy", "a", "b")),
		}, false},
		"one that does not want it, too": {framework.ClusterEvent{
			Resource:   framework.AssignedPodEvent,
			ActionType: framework.UpdatePodLabel,
			OldPod:     fixture.Pod("w", without(term("web", "zone"))),
			NewPod:     fixture.Pod("w", without(term("web", "zone")), labelled("a", "b")),
		}, false},
		"another became db": {framework.ClusterEvent{
			Resource:   framework.AssignedPodEvent,
			ActionType: framework.UpdatePodLabel,
			OldPod:     fixture.Pod("n"),
			NewPod:     fixture.Pod("n", labelled("app", "db")),
		}, true},
		"noisy became smelly": {framework.ClusterEvent{
			Resource:   framework.AssignedPodEvent,
			ActionType: framework.UpdatePodLabel,
			OldPod:     fixture.Pod("n", labelled("app", "noisy")),
			NewPod:     fixture.Pod("n", labelled("app", "smelly")),
		}, true},
		"noisy became quiet": {framework.ClusterEvent{
			Resource:   framework.AssignedPodEvent,
			ActionType: framework.UpdatePodLabel,
			OldPod:     fixture.Pod("n", labelled("app", "noisy")),
			NewPod:     fixture.Pod("n"),
		}, true},
	} {
		if hint.Covers(waits, test.event) != test.want {
			t.Errorf("%s: want %v", name, test.want)
		}
	}
}
