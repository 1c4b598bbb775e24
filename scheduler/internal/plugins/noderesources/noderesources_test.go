package noderesources

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
	"kctl/scheduler/internal/shape"
)

func TestFit(t *testing.T) {
	asks := func(pairs ...string) *core.Pod { return fixture.Pod("p", fixture.Requests(pairs...)) }
	gpus := fixture.Allocatable("example.com/gpu", "2")
	for name, test := range map[string]struct {
		options FitOptions
		node    *core.Node
		on      []*core.Pod
		pod     *core.Pod
		code    framework.Code
		reasons []string
	}{
		"fits":              {pod: asks("cpu", "4", "memory", "8Gi")},
		"fits what is left": {on: []*core.Pod{asks("cpu", "1")}, pod: asks("cpu", "3")},
		"cpu taken": {on: []*core.Pod{asks("cpu", "2")}, pod: asks("cpu", "2001m"), code: framework.Unschedulable,
			reasons: []string{"Insufficient cpu"}},
		"cpu never": {pod: asks("cpu", "5"), code: framework.UnschedulableAndUnresolvable, reasons: []string{"Insufficient cpu"}},
		"everything": {pod: asks("cpu", "5", "memory", "9Gi", "ephemeral-storage", "1Ti"), code: framework.UnschedulableAndUnresolvable,
			reasons: []string{"Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"}},
		"asks for nothing":        {on: []*core.Pod{asks("cpu", "4", "memory", "8Gi")}, pod: asks()},
		"over-committed, nothing": {on: []*core.Pod{asks("cpu", "40")}, pod: asks("memory", "1Gi")},
		"pods": {node: fixture.Node("n", fixture.Allocatable("pods", "1")), on: []*core.Pod{asks()}, pod: asks(),
			code: framework.Unschedulable, reasons: []string{"Too many pods"}},
		"extended, fits": {node: fixture.Node("n", gpus), pod: asks("example.com/gpu", "2")},
		"extended, not": {node: fixture.Node("n", gpus), on: []*core.Pod{asks("example.com/gpu", "1")}, pod: asks("example.com/gpu", "2"),
			code: framework.Unschedulable, reasons: []string{"Insufficient example.com/gpu"}},
		"extended, no such": {pod: asks("example.com/gpu", "1", "cpu", "5"), code: framework.UnschedulableAndUnresolvable,
			reasons: []string{"Insufficient cpu", "Insufficient example.com/gpu"}},
		"extended, of zero":  {pod: asks("example.com/gpu", "0")},
		"extended, ignored":  {options: FitOptions{IgnoredGroups: []string{"example.com"}}, pod: asks("example.com/gpu", "1")},
		"huge pages":         {pod: asks("hugepages-2Mi", "2Mi"), code: framework.UnschedulableAndUnresolvable, reasons: []string{"Insufficient hugepages-2Mi"}},
		"larger than int64":  {pod: asks("cpu", "1e30"), code: framework.UnschedulableAndUnresolvable, reasons: []string{"Insufficient cpu"}},
		"the largest memory": {pod: asks("memory", "9223372036854775807"), code: framework.UnschedulableAndUnresolvable, reasons: []string{"Insufficient memory"}},
		"init containers count by the largest": {pod: fixture.Pod("p", func(p *core.Pod) {
			p.Spec.InitContainers = []core.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: fixture.List("cpu", "3")}},
				{Name: "b", Resources: corev1.ResourceRequirements{Requests: fixture.List("cpu", "3")}}}
		})},
		"overhead counts": {pod: fixture.Pod("p", fixture.Requests("cpu", "4"), func(p *core.Pod) { p.Spec.Overhead = fixture.List("cpu", "1m") }),
			code: framework.UnschedulableAndUnresolvable, reasons: []string{"Insufficient cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			node := test.node
			if node == nil {
				node = fixture.Node("n")
			}
			status := plugintest.Filter(t.Context(), NewFit(test.options), test.pod, fixture.NodeInfo(node, test.on...))
			if status.Code() != test.code || !slices.Equal(status.Reasons(), test.reasons) {
				t.Errorf("%v %q, want %v %q", status.Code(), status.Reasons(), test.code, test.reasons)
			}
		})
	}
}

func TestFitScore(t *testing.T) {
	half := fixture.Pod("half", fixture.Requests("cpu", "2", "memory", "4Gi"))
	nodes := []*framework.NodeInfo{
		fixture.NodeInfo(fixture.Node("empty")),
		fixture.NodeInfo(fixture.Node("used"), half),
	}
	for name, test := range map[string]struct {
		options FitOptions
		pod     *core.Pod
		want    []int64
	}{
		"least": {FitOptions{}, fixture.Pod("p", fixture.Requests("cpu", "1", "memory", "2Gi")), []int64{75, 25}},
		"most":  {FitOptions{MostAllocated: true}, fixture.Pod("p", fixture.Requests("cpu", "1", "memory", "2Gi")), []int64{25, 75}},
		"least, cpu counts three times": {FitOptions{Weights: []Weight{{"cpu", 3}, {"memory", 1}}}, fixture.Pod("p", fixture.Requests("cpu", "2", "memory", "0")),
			[]int64{(3*50 + 100) / 4, 50 / 4}},
		// 100m of 4 CPUs, 200 MiB of 8 GiB
		"asks for nothing, counts a little": {FitOptions{}, fixture.Pod("p"), []int64{97, 47}},
		"extended that nobody asked for":    {FitOptions{Weights: []Weight{{"example.com/gpu", 1}}}, fixture.Pod("p"), []int64{0, 0}},
		"asks as a whole, scored by containers": {FitOptions{}, fixture.Pod("p", fixture.Requests("cpu", "1", "memory", "2Gi"), func(p *core.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: fixture.List("cpu", "4", "memory", "8Gi")}
		}), []int64{75, 25}},
		"more than there is": {FitOptions{}, fixture.Pod("p", fixture.Requests("cpu", "9", "memory", "9223372036854775807")), []int64{0, 0}},
	} {
		scores, status := plugintest.Scores(t.Context(), NewFit(test.options), test.pod, nodes...)
		if !status.IsSuccess() || !slices.Equal(scores, test.want) {
			t.Errorf("%s: %v %v, want %v", name, scores, status.Reasons(), test.want)
		}
	}
}

// The shapes are upstream's documented examples: bin packing, and a shape that
// rises and falls.
func TestRequestedToCapacityRatio(t *testing.T) {
	packing := shape.Function{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 100}}
	emptying := shape.Function{{Utilization: 0, Score: 100}, {Utilization: 100, Score: 0}}
	hill := shape.Function{{Utilization: 0, Score: 0}, {Utilization: 50, Score: 100}, {Utilization: 100, Score: 20}}
	asks := func(cpu, memory string) *core.Pod {
		return fixture.Pod("p", fixture.Requests("cpu", cpu, "memory", memory))
	}
	cpu := []Weight{{"cpu", 1}}
	for name, test := range map[string]struct {
		options FitOptions
		cpu     string
		memory  string
		want    int64 // on a node with 4 CPUs and 8 GiB
	}{
		"packing":            {FitOptions{Shape: packing, Weights: cpu}, "1", "0", 25},
		"packing, full":      {FitOptions{Shape: packing, Weights: cpu}, "4", "0", 100},
		"more than there is": {FitOptions{Shape: packing, Weights: cpu}, "9", "0", 100},
		"on a point":         {FitOptions{Shape: hill, Weights: cpu}, "2", "0", 100},
		"falling":            {FitOptions{Shape: hill, Weights: cpu}, "3", "0", 60},
		"before the first":   {FitOptions{Shape: shape.Function{{Utilization: 50, Score: 30}, {Utilization: 100, Score: 100}}, Weights: cpu}, "1", "0", 30},
		"after the last":     {FitOptions{Shape: shape.Function{{Utilization: 0, Score: 10}, {Utilization: 50, Score: 70}}, Weights: cpu}, "4", "0", 70},
		"weighted":           {FitOptions{Shape: hill, Weights: []Weight{{"cpu", 3}, {"memory", 1}}}, "2", "6Gi", (3*100 + 60) / 4},
		"rounded":            {FitOptions{Shape: packing, Weights: []Weight{{"cpu", 1}, {"memory", 1}}}, "1", "4200Mi", 38}, // of 25 and 51
		// Memory is not used: it does not lower the score.
		"worth nothing, left out": {FitOptions{Shape: packing, Weights: []Weight{{"cpu", 1}, {"memory", 3}}}, "2", "0", 50},
		"pods are not rated":      {FitOptions{Shape: emptying, Weights: []Weight{{"cpu", 1}, {corev1.ResourcePods, 9}}}, "3", "0", 25},
	} {
		scores, status := plugintest.Scores(t.Context(), NewFit(test.options), asks(test.cpu, test.memory), fixture.NodeInfo(fixture.Node("n")))
		if !status.IsSuccess() || scores[0] != test.want {
			t.Errorf("%s: %v %v, want %d", name, scores, status.Reasons(), test.want)
		}
	}
}

// A node whose balance stays the same gets 75, plus half of what its balance
// gains or loses.
func TestBalanced(t *testing.T) {
	lopsided := fixture.Pod("cpu", fixture.Requests("cpu", "2"))
	nodes := []*framework.NodeInfo{
		fixture.NodeInfo(fixture.Node("even")),
		fixture.NodeInfo(fixture.Node("cpu-used"), lopsided),
	}
	for name, test := range map[string]struct {
		pod  *core.Pod
		want []int64
	}{
		"even pod":   {fixture.Pod("p", fixture.Requests("cpu", "2", "memory", "4Gi")), []int64{75, 75}},
		"memory pod": {fixture.Pod("p", fixture.Requests("memory", "4Gi")), []int64{62, 87}}, // deviations: 0 to .25, and back
		"cpu pod":    {fixture.Pod("p", fixture.Requests("cpu", "2")), []int64{62, 62}},      // and .25 to .5
		"asks as a whole": {fixture.Pod("p", func(p *core.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: fixture.List("memory", "4Gi")}
		}), []int64{62, 87}},
		"best effort pod": {fixture.Pod("p"), nil},
	} {
		scores, status := plugintest.Scores(t.Context(), NewBalanced(nil), test.pod, nodes...)
		if !status.IsSuccess() || !slices.Equal(scores, test.want) {
			t.Errorf("%s: %v %v, want %v", name, scores, status.Reasons(), test.want)
		}
	}
	// Huge pages that the pod does not request don't affect the balance: 0 and 0
	// to .5 and .5.
	node := fixture.NodeInfo(fixture.Node("n", fixture.Allocatable("hugepages-2Mi", "64Mi")))
	with := NewBalanced([]Weight{{"cpu", 1}, {"memory", 1}, {"hugepages-2Mi", 1}})
	if scores, _ := plugintest.Scores(t.Context(), with, fixture.Pod("p", fixture.Requests("cpu", "2", "memory", "4Gi")), node); !slices.Equal(scores,
		[]int64{75}) {
		t.Errorf("beside huge pages: %v, want 75", scores)
	}
}

func TestHints(t *testing.T) {
	fit := NewFit(FitOptions{})
	covers := func(pod *core.Pod, event framework.ClusterEvent) bool {
		for _, i := range fit.EventsToRegister() {
			if i.Covers(framework.NewPodInfo(pod), event) {
				return true
			}
		}
		return false
	}
	waits := fixture.Pod("p", fixture.Requests("cpu", "2"))
	shrunk := func(before, after string) framework.ClusterEvent {
		old, updated := fixture.Pod("o", fixture.Requests("cpu", before, "memory", before)), fixture.Pod("o", fixture.Requests("cpu", after, "memory", before))
		return framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.UpdatePodScaleDown, OldPod: old, NewPod: updated}
	}
	if !covers(waits, shrunk("2", "1")) {
		t.Error("a pod that gives CPU back does not wake a pod that waits for CPU")
	}
	if covers(fixture.Pod("p", fixture.Requests("memory", "1Gi")), shrunk("2", "1")) {
		t.Error("a pod that gives CPU back wakes a pod that waits for memory")
	}
	grown := framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.UpdateNodeAllocatable, NewNode: fixture.Node("n")}
	if !covers(waits, grown) || covers(fixture.Pod("p", fixture.Requests("cpu", "64")), grown) {
		t.Error("the hint of a node's resources does not look at the pod's")
	}
	for has, want := range map[string]bool{"3": true, "4": false, "5": false} { // and 4 now
		if grown.OldNode = fixture.Node("n", fixture.Allocatable("cpu", has)); covers(waits, grown) != want {
			t.Errorf("a node that had %s CPUs: want %v", has, want)
		}
	}
}
