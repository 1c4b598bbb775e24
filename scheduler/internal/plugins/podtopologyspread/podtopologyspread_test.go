package podtopologyspread

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
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
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: action,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
	for _, change := range changes {
		change(&c)
	}
	return func(p *core.Pod) { p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c) }
}

// node is in a zone and has so many web pods.
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
		"no constraint":             {web(), node("a", "a", 9), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"emptiest zone":             {web(spread("zone", no)), node("a", "a", 0), []*framework.NodeInfo{node("b", "b", 1)}, true},
		"fullest zone":              {web(spread("zone", no)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0)}, false},
		"zones are even":            {web(spread("zone", no)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 1)}, true},
		"zone of two nodes":         {web(spread("zone", no)), node("a1", "a", 0), []*framework.NodeInfo{node("a2", "a", 1), node("b", "b", 0)}, false},
		"larger skew":               {web(spread("zone", no, skew(2))), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"pod that does not count":   {fixture.Pod("p", app("db"), spread("zone", no)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"another namespace":         {web(spread("zone", no), func(p *core.Pod) { p.Namespace = "other" }), node("a", "a", 5), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"node without the label":    {web(spread("zone", no)), unlabelled, []*framework.NodeInfo{node("b", "b", 0)}, false},
		"preferred only":            {web(spread("zone", corev1.ScheduleAnyway)), node("a", "a", 9), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"too few domains":           {web(spread("zone", no, minDomains(3))), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 1)}, false},
		"enough domains":            {web(spread("zone", no, minDomains(2))), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 1)}, true},
		"tainted nodes count":       {web(spread("zone", no)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0, tainted)}, false},
		"tainted nodes do not":      {web(spread("zone", no, taints)), node("a", "a", 1), []*framework.NodeInfo{node("b", "b", 0, tainted)}, true},
		"other nodes do not count":  {web(pool, spread("zone", no)), node("a", "a", 1, inPool), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"other nodes count":         {web(pool, spread("zone", no, ignoreAffinity)), node("a", "a", 1, inPool), []*framework.NodeInfo{node("b", "b", 0)}, false},
		"ending pods do not count":  {web(spread("zone", no)), gone, []*framework.NodeInfo{node("b", "b", 0)}, true},
		"other label value":         {web(spread("zone", no, byHash), func(p *core.Pod) { p.Labels = map[string]string{"hash": "2"} }), node("a", "a", 5), []*framework.NodeInfo{node("b", "b", 0)}, true},
		"two constraints, one full": {web(spread("zone", no), spread(corev1.LabelHostname, no)), node("a1", "a", 1), []*framework.NodeInfo{node("a2", "a", 0), node("b", "b", 1)}, false},
		"invalid selector": {web(spread("zone", no, func(c *corev1.TopologySpreadConstraint) {
			c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Bogus"}}}
		})), node("a", "a", 0), nil, false},
	} {
		if status := plugintest.Filter(t.Context(), New(), test.pod, test.node, test.others...); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}

func TestScore(t *testing.T) {
	pod := fixture.Pod("p", app("web"), spread("zone", corev1.ScheduleAnyway))
	nodes := []*framework.NodeInfo{node("a", "a", 4), node("b", "b", 2), node("c", "c", 0), fixture.NodeInfo(fixture.Node("bare"))}
	scores, status := plugintest.Scores(t.Context(), New(), pod, nodes...)
	// 4, 2 and 0 pods times log(3+2) are 6, 3 and 0.
	if want := []int64{0, 50, 100, 0}; !status.IsSuccess() || !slices.Equal(scores, want) {
		t.Errorf("%v %v, want %v", scores, status.Reasons(), want)
	}
	if scores, _ := plugintest.Scores(t.Context(), New(), fixture.Pod("p"), nodes...); scores != nil {
		t.Errorf("a pod without constraints is scored %v", scores)
	}
}
