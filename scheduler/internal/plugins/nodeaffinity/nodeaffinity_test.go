package nodeaffinity

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func requirement(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

func labels(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: r}
}

func named(names ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", corev1.NodeSelectorOpIn, names...)}}
}

func required(terms ...corev1.NodeSelectorTerm) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

func selector(key, value string) func(*core.Pod) {
	return func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func plugin(t *testing.T, added *corev1.NodeAffinity) *Plugin {
	t.Helper()
	p, err := New(added)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFilter(t *testing.T) {
	node := fixture.Node("n1", fixture.Label("zone", "a"), fixture.Label("size", "5"))
	in, notIn, exists, absent := corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist
	for name, test := range map[string]struct {
		pod  *core.Pod
		fits bool
	}{
		"nothing asked":                {fixture.Pod("p"), true},
		"selector":                     {fixture.Pod("p", selector("zone", "a")), true},
		"selector, another value":      {fixture.Pod("p", selector("zone", "b")), false},
		"selector, no such label":      {fixture.Pod("p", selector("disk", "ssd")), false},
		"in":                           {fixture.Pod("p", required(labels(requirement("zone", in, "b", "a")))), true},
		"not in":                       {fixture.Pod("p", required(labels(requirement("zone", notIn, "a")))), false},
		"not in, no such label":        {fixture.Pod("p", required(labels(requirement("disk", notIn, "a")))), true},
		"exists":                       {fixture.Pod("p", required(labels(requirement("zone", exists)))), true},
		"does not exist":               {fixture.Pod("p", required(labels(requirement("zone", absent)))), false},
		"greater than":                 {fixture.Pod("p", required(labels(requirement("size", corev1.NodeSelectorOpGt, "4")))), true},
		"less than":                    {fixture.Pod("p", required(labels(requirement("size", corev1.NodeSelectorOpLt, "4")))), false},
		"two requirements, one fails":  {fixture.Pod("p", required(labels(requirement("zone", in, "a"), requirement("size", in, "6")))), false},
		"two terms, one holds":         {fixture.Pod("p", required(labels(requirement("zone", in, "b")), labels(requirement("size", in, "5")))), true},
		"no terms match nothing":       {fixture.Pod("p", required()), false},
		"an empty term holds nothing":  {fixture.Pod("p", required(labels())), false},
		"selector and affinity differ": {fixture.Pod("p", selector("zone", "a"), required(labels(requirement("zone", in, "b")))), false},
		"invalid value":                {fixture.Pod("p", required(labels(requirement("zone", in, "not valid!")))), false},
		"this node by name":            {fixture.Pod("p", required(named("n1"))), true},
		"another node by name":         {fixture.Pod("p", required(named("n2"))), false},
		"names or labels":              {fixture.Pod("p", required(named("n2"), labels(requirement("zone", in, "a")))), true},
		"contradicting names": {fixture.Pod("p", required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			requirement("metadata.name", in, "n1"), requirement("metadata.name", in, "n2")}})), false},
	} {
		if status := plugintest.Filter(t.Context(), plugin(t, nil), test.pod, fixture.NodeInfo(node)); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}

func TestAddedAffinityHoldsForEveryPod(t *testing.T) {
	p := plugin(t, &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{labels(requirement("pool", corev1.NodeSelectorOpIn, "batch"))},
	}})
	if status := plugintest.Filter(t.Context(), p, fixture.Pod("p"), fixture.NodeInfo(fixture.Node("n"))); status.IsSuccess() {
		t.Error("a node outside the pool passes")
	}
	if status := plugintest.Filter(t.Context(), p, fixture.Pod("p"), fixture.NodeInfo(fixture.Node("n", fixture.Label("pool", "batch")))); !status.IsSuccess() {
		t.Errorf("a node of the pool is refused: %v", status.Reasons())
	}
	if _, err := New(&corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{labels(requirement("pool", "Bogus"))},
	}}); err == nil {
		t.Error("an invalid added affinity is taken")
	}
}

// scoring leaves a plugin nothing but Score.
type scoring = framework.Score

func TestScore(t *testing.T) {
	preferring := func(p *core.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 30, Preference: labels(requirement("zone", corev1.NodeSelectorOpIn, "a"))},
				{Weight: 10, Preference: labels(requirement("disk", corev1.NodeSelectorOpExists))},
			},
		}}
	}
	nodes := []*framework.NodeInfo{
		fixture.NodeInfo(fixture.Node("both", fixture.Label("zone", "a"), fixture.Label("disk", "ssd"))),
		fixture.NodeInfo(fixture.Node("zone", fixture.Label("zone", "a"))),
		fixture.NodeInfo(fixture.Node("none")),
	}
	scores, status := plugintest.Scores(t.Context(), plugin(t, nil), fixture.Pod("p", preferring), nodes...)
	if want := []int64{100, 75, 0}; !status.IsSuccess() || !slices.Equal(scores, want) {
		t.Errorf("%v %v, want %v", scores, status.Reasons(), want)
	}
	if scores, _ := plugintest.Scores(t.Context(), plugin(t, nil), fixture.Pod("p"), nodes...); scores != nil {
		t.Errorf("a pod that prefers nothing is scored %v", scores)
	}
	// A profile may disable PreScore, and have Score.
	alone := struct{ scoring }{plugin(t, nil)}
	scores, status = plugintest.Scores(t.Context(), alone, fixture.Pod("p", preferring), nodes...)
	if want := []int64{40, 30, 0}; !status.IsSuccess() || !slices.Equal(scores, want) {
		t.Errorf("without PreScore: %v %v, want %v", scores, status.Reasons(), want)
	}
}

func TestHints(t *testing.T) {
	hint := plugin(t, nil).EventsToRegister()[0]
	pod := framework.NewPodInfo(fixture.Pod("p", selector("zone", "a")))
	for zone, want := range map[string]bool{"a": true, "b": false} {
		event := framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.UpdateNodeLabel, NewNode: fixture.Node("n", fixture.Label("zone", zone))}
		if hint.Covers(pod, event) != want {
			t.Errorf("zone %s: want %v", zone, want)
		}
		event.OldNode = fixture.Node("n", fixture.Label("zone", zone), fixture.Label("other", "x"))
		if hint.Covers(pod, event) {
			t.Errorf("zone %s, as before: it can't help", zone)
		}
	}
}
