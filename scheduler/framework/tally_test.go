package framework

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// counted is a node in one of three zones, with pods of several kinds.
func counted(random *rand.Rand, name string) *NodeInfo {
	node := &NodeInfo{Node: &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"host": name}}}}
	if zone := random.IntN(4); zone > 0 {
		node.Node.Labels["zone"] = fmt.Sprint(zone)
	}
	for range random.IntN(4) {
		node.Pods = append(node.Pods, &PodInfo{Pod: &core.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kind": fmt.Sprint(random.IntN(3))}}}})
	}
	return node
}

// kinds counts the pods of a kind by zone and by host.
func kinds(kind string) CountFunc {
	return func(node *NodeInfo, add AddFunc) {
		for _, pod := range node.Pods {
			if pod.Pod.Labels["kind"] == kind {
				add.At(node.Node, "zone", 1)
				add.At(node.Node, "host", 1)
			}
		}
	}
}

// TestTalliesFollow: a tally that follows the changes of nodes equals a new
// count, however many changes and other tallies come in between.
func TestTalliesFollow(t *testing.T) {
	const seeds, steps = 10, 300
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 0))
		var tallies Tallies
		nodes := make([]*NodeInfo, 1+random.IntN(40))
		for i := range nodes {
			nodes[i] = counted(random, fmt.Sprint("n", i))
		}
		for step := range steps {
			for range random.IntN(3) * random.IntN(30) {
				i := random.IntN(len(nodes))
				tallies.Replace(nodes[i], counted(random, nodes[i].Name()))
			}
			if random.IntN(100) == 0 { // as when there are other nodes
				nodes = append(nodes, counted(random, fmt.Sprint("n", len(nodes))))
				tallies.Reset()
			}
			kind := fmt.Sprint(random.IntN(3))
			key := kind
			if random.IntN(3) == 0 {
				key = fmt.Sprint(kind, " once at ", step) // pushes others out
			}
			kept := &CycleState{Nodes: nodes, Tallies: &tallies}
			anew := &CycleState{Nodes: nodes}
			if want, got := anew.Tally(key, kinds(kind)), kept.Tally(key, kinds(kind)); !reflect.DeepEqual(want, got) {
				t.Fatalf("seed %d, step %d, pods of kind %s: %v, a new count %v", seed, step, kind, got, want)
			}
			if len(tallies.kept) > maxTallies || len(tallies.changes) > maxChanges {
				t.Fatalf("%d tallies and %d changes are kept", len(tallies.kept), len(tallies.changes))
			}
		}
	}
}

// TestWhatIf: changes in one copy are not seen in another.
func TestWhatIf(t *testing.T) {
	sum := Tally{}
	sum.Add("zone", "a", 2)
	sum.Add("zone", "b", 1)
	before := maps.Clone(sum["zone"])
	first := NewWhatIf(sum)
	first.Add("zone", "a", -2)
	second := first.Clone()
	second.Add("zone", "b", -1)
	node := &core.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "b"}}}
	if first.At("zone", "a") != 0 || first.At("zone", "b") != 1 || first.On(node) != 1 || first.Empty() {
		t.Errorf("after a change: a %d, b %d, empty %t", first.At("zone", "a"), first.At("zone", "b"), first.Empty())
	}
	if second.On(node) != 0 || !second.Empty() {
		t.Errorf("after another: b %d, empty %t", second.On(node), second.Empty())
	}
	if !maps.Equal(before, sum["zone"]) {
		t.Errorf("the original tally has changed to %v", sum["zone"])
	}
}
