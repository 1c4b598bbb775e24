package tainttoleration

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func tolerating(tolerations ...corev1.Toleration) *core.Pod {
	return fixture.Pod("p", func(p *core.Pod) { p.Spec.Tolerations = tolerations })
}

func TestFilter(t *testing.T) {
	const (
		noSchedule = corev1.TaintEffectNoSchedule
		noExecute  = corev1.TaintEffectNoExecute
		prefer     = corev1.TaintEffectPreferNoSchedule
	)
	equal := corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: noSchedule}
	for name, test := range map[string]struct {
		pod  *core.Pod
		node *core.Node
		fits bool
	}{
		"no taint":             {tolerating(), fixture.Node("n"), true},
		"NoSchedule":           {tolerating(), fixture.Node("n", fixture.Taint("k", "v", noSchedule)), false},
		"NoExecute":            {tolerating(), fixture.Node("n", fixture.Taint("k", "v", noExecute)), false},
		"PreferNoSchedule":     {tolerating(), fixture.Node("n", fixture.Taint("k", "v", prefer)), true},
		"tolerated":            {tolerating(equal), fixture.Node("n", fixture.Taint("k", "v", noSchedule)), true},
		"another value":        {tolerating(equal), fixture.Node("n", fixture.Taint("k", "w", noSchedule)), false},
		"another effect":       {tolerating(equal), fixture.Node("n", fixture.Taint("k", "v", noExecute)), false},
		"one of two tolerated": {tolerating(equal), fixture.Node("n", fixture.Taint("k", "v", noSchedule), fixture.Taint("k2", "v", noSchedule)), false},
		"exists, any effect": {tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}),
			fixture.Node("n", fixture.Taint("k", "v", noExecute)), true},
		"empty key and exists, all": {tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}),
			fixture.Node("n", fixture.Taint("a", "", noSchedule), fixture.Taint("b", "", noExecute)), true},
		"greater than, numerically so": {tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpGt, Value: "5"}),
			fixture.Node("n", fixture.Taint("k", "10", noSchedule)), true},
		"greater than, numerically not": {tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpGt, Value: "50"}),
			fixture.Node("n", fixture.Taint("k", "10", noSchedule)), false},
		"greater than, no number": {tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpGt, Value: "x"}),
			fixture.Node("n", fixture.Taint("k", "10", noSchedule)), false},
	} {
		if status := plugintest.Filter(t.Context(), New(), test.pod, fixture.NodeInfo(test.node)); status.IsSuccess() != test.fits {
			t.Errorf("%s: %v", name, status.Reasons())
		}
	}
}

func TestManyTolerations(t *testing.T) {
	var many []corev1.Toleration
	for range 1000 {
		many = append(many, corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists})
	}
	node := fixture.NodeInfo(fixture.Node("n", fixture.Taint("k", "v", corev1.TaintEffectNoSchedule)))
	if plugintest.Filter(t.Context(), New(), tolerating(many...), node).IsSuccess() {
		t.Error("1,000 tolerations of something else tolerate the taint")
	}
}

func TestScore(t *testing.T) {
	prefer := corev1.TaintEffectPreferNoSchedule
	nodes := []*framework.NodeInfo{
		fixture.NodeInfo(fixture.Node("clean")),
		fixture.NodeInfo(fixture.Node("one", fixture.Taint("a", "", prefer))),
		fixture.NodeInfo(fixture.Node("two", fixture.Taint("a", "", prefer), fixture.Taint("b", "", prefer))),
	}
	for name, test := range map[string]struct {
		pod   *core.Pod
		nodes []*framework.NodeInfo
		want  []int64
	}{
		"none tolerated": {tolerating(), nodes, []int64{100, 50, 0}},
		"one tolerated":  {tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}), nodes, []int64{100, 100, 0}},
		"tolerated for NoExecute only": {tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}), nodes,
			[]int64{100, 50, 0}},
		"no such taint": {tolerating(), nodes[:1], nil},
	} {
		scores, status := plugintest.Scores(t.Context(), New(), test.pod, test.nodes...)
		if !status.IsSuccess() || !slices.Equal(scores, test.want) {
			t.Errorf("%s: %v %v, want %v", name, scores, status.Reasons(), test.want)
		}
	}
}

// A profile may have the plugin score without its PreScore.
func TestScoreAlone(t *testing.T) {
	node := fixture.NodeInfo(fixture.Node("n", fixture.Taint("a", "", corev1.TaintEffectPreferNoSchedule)))
	for want, pod := range []*core.Pod{
		tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}),
		tolerating(corev1.Toleration{Key: "b", Operator: corev1.TolerationOpExists}),
	} {
		if got, status := New().Score(t.Context(), framework.NewCycleState(nil), framework.NewPodInfo(pod), node); !status.IsSuccess() || got != int64(want) {
			t.Errorf("%v: %d taints that are not tolerated, %v", pod.Spec.Tolerations, got, status.Reasons())
		}
	}
}
