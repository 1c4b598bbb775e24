package nominator

import (
	"slices"
	"testing"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

// recording returns a Nominator and the names of the pods whose room it gave up.
func recording() (*Nominator, *[]string) {
	n, released := New(), &[]string{}
	n.OnRelease(func(pod *core.Pod) { *released = append(*released, pod.Name) })
	return n, released
}

func names(pods []*framework.PodInfo) []string {
	all := []string{}
	for _, p := range pods {
		all = append(all, p.Pod.Name)
	}
	return all
}

func TestAPodIsNominatedToOneNode(t *testing.T) {
	n, released := recording()
	pod, other := fixture.Pod("a"), fixture.Pod("b")
	n.Set(pod, "one")
	n.Set(other, "one")
	n.Set(pod, "two")
	if n.Of(pod.UID) != "two" || !slices.Equal(names(n.On("one")), []string{"b"}) || !slices.Equal(names(n.On("two")), []string{"a"}) {
		t.Errorf("a on %s; one: %v, two: %v", n.Of(pod.UID), names(n.On("one")), names(n.On("two")))
	}
	n.Set(pod, "two") // again, as the API tells it
	if !slices.Equal(*released, []string{"a"}) || len(n.On("two")) != 1 {
		t.Errorf("released %v, want a once, from one; two: %v", *released, names(n.On("two")))
	}
}

// The room is given up when the pod goes, or gets another node, and not when it gets
// the one that was kept for it.
func TestWhenRoomIsReleased(t *testing.T) {
	for name, test := range map[string]struct {
		end      func(n *Nominator, pod *core.Pod)
		released bool
	}{
		"deleted":             {func(n *Nominator, pod *core.Pod) { n.Delete(pod.UID) }, true},
		"placed there":        {func(n *Nominator, pod *core.Pod) { n.Taken(pod.UID, "one") }, false},
		"placed elsewhere":    {func(n *Nominator, pod *core.Pod) { n.Taken(pod.UID, "two") }, true},
		"somebody else's end": {func(n *Nominator, _ *core.Pod) { n.Delete("another") }, false},
	} {
		n, released := recording()
		pod := fixture.Pod("a")
		n.Set(pod, "one")
		test.end(n, pod)
		if got := len(*released) == 1; got != test.released {
			t.Errorf("%s: released %v, want %t", name, *released, test.released)
		}
		if left := n.Of(pod.UID); (left == "one") != (name == "somebody else's end") {
			t.Errorf("%s: it is still nominated to %q", name, left)
		}
	}
}

func TestWhoComesBefore(t *testing.T) {
	n, _ := recording()
	for name, priority := range map[string]int32{"low": 1, "same": 5, "high": 9} {
		n.Set(fixture.Pod(name, fixture.Priority(priority)), "one")
	}
	self := fixture.Pod("self", fixture.Priority(5))
	n.Set(self, "one")
	got := names(n.Before(framework.NewPodInfo(self), fixture.NodeInfo(fixture.Node("one"))))
	slices.Sort(got)
	if !slices.Equal(got, []string{"high", "same"}) {
		t.Errorf("%v come before, want high and same", got)
	}
	if elsewhere := n.Before(framework.NewPodInfo(self), fixture.NodeInfo(fixture.Node("two"))); len(elsewhere) > 0 {
		t.Errorf("%v come before on another node", names(elsewhere))
	}
}

// An attempt under way goes on with the pods that it was given.
func TestASliceThatWasGivenStaysAsItWas(t *testing.T) {
	n, _ := recording()
	first, second := fixture.Pod("a"), fixture.Pod("b")
	n.Set(first, "one")
	n.Set(second, "one")
	given := n.On("one")
	n.Delete(first.UID)
	n.Set(fixture.Pod("c"), "one")
	if !slices.Equal(names(given), []string{"a", "b"}) {
		t.Errorf("it has become %v", names(given))
	}
}

func TestLeaving(t *testing.T) {
	n, _ := recording()
	n.AskToLeave("a")
	if !n.Leaving("a") || n.Leaving("b") {
		t.Errorf("a leaves: %t, b: %t", n.Leaving("a"), n.Leaving("b"))
	}
	n.Left("a")
	if n.Leaving("a") {
		t.Error("it has left, and leaves")
	}
}
