package cache

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

func TestZonesTakeTurns(t *testing.T) {
	c, s := New(clock.RealClock{}, DefaultExpiry), NewSnapshot()
	zoned := func(name, zone string) {
		c.SetNode(fixture.Node(name, fixture.Label(corev1.LabelTopologyZone, zone)))
	}
	check := func(when string, want ...string) {
		t.Helper()
		c.Update(s)
		var got []string
		for turn, n := range s.Turns() {
			got = append(got, n.Name())
			if same, _ := s.Node(n.Name()); same != n {
				t.Errorf("%s: %s is another than in the list by name", when, n.Name())
			}
			if generation := s.Generations()[turn]; generation != n.Generation {
				t.Errorf("%s: %s has generation %d, listed as %d", when, n.Name(), n.Generation, generation)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	check("at first")
	for _, name := range []string{"a1", "a2", "a3"} {
		zoned(name, "a")
	}
	zoned("b1", "b")
	zoned("c1", "c")
	zoned("c2", "c")
	check("three zones", "a1", "b1", "c1", "a2", "c2", "a3")
	if err := c.Assume(framework.NewPodInfo(fixture.Pod("p")), "c2"); err != nil {
		t.Fatal(err)
	}
	check("a pod came", "a1", "b1", "c1", "a2", "c2", "a3")
	if s.Turns()[4].Pods == nil {
		t.Error("the pod is not seen")
	}
	zoned("a1", "b")
	check("a node moved", "a1", "a2", "c1", "b1", "a3", "c2")
	c.RemoveNode("c1")
	check("a node went", "a1", "a2", "c2", "b1", "a3")
}

// The snapshot knows whether a node has a PreferNoSchedule taint.
func TestNodesToAvoid(t *testing.T) {
	c, s := New(clock.RealClock{}, DefaultExpiry), NewSnapshot()
	avoid := fixture.Taint("k", "v", corev1.TaintEffectPreferNoSchedule)
	check := func(when string, none bool) {
		t.Helper()
		c.Update(s)
		var state framework.CycleState
		if s.Show(&state); state.NoPreferNoSchedule != none {
			t.Errorf("%s: no such taint: %t, want %t", when, state.NoPreferNoSchedule, none)
		}
	}
	check("no nodes", true)
	c.SetNode(fixture.Node("a", avoid))
	c.SetNode(fixture.Node("b", fixture.Taint("k", "v", corev1.TaintEffectNoSchedule)))
	check("one of two", false)
	if err := c.Assume(framework.NewPodInfo(fixture.Pod("p")), "a"); err != nil {
		t.Fatal(err)
	}
	check("a pod came", false)
	c.SetNode(fixture.Node("b", avoid))
	c.SetNode(fixture.Node("a"))
	check("it went from one to the other", false)
	c.SetNode(fixture.Node("b"))
	check("none any more", true)
	c.SetNode(fixture.Node("b", avoid))
	check("again", false)
	c.RemoveNode("b")
	check("its node went", true)
}

// What has been counted is counted again when namespaces have other labels: rules about
// pods may choose them by these.
func TestNamespacesCountAnew(t *testing.T) {
	c, _ := newCache()
	c.SetNode(fixture.Node("a"))
	s := NewSnapshot()
	matches := int64(1) // by the labels of a namespace
	counted := func() int64 {
		c.Update(s)
		state := framework.NewCycleState(nil)
		s.Show(state)
		tally := state.Tally("key", func(_ *framework.NodeInfo, add framework.AddFunc) { add("zone", "z", matches) })
		return tally["zone"]["z"]
	}
	if got := counted(); got != 1 {
		t.Fatalf("counted %d", got)
	}
	matches = 0
	c.NamespaceChanged()
	if got := counted(); got != 0 {
		t.Errorf("counted %d after the namespaces changed", got)
	}
}
