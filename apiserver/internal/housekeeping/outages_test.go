package housekeeping

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// tell sets a node's condition, like its kubelet.
func (h *house) tell(name string, ready corev1.ConditionStatus) {
	n := h.nodes.Peek("", name).(*core.Node)
	n.Status = node(name, ready).Status
	h.nodes.Put(n)
	synctest.Wait()
}

// givenUp are the nodes from which pods are evicted.
func (h *house) givenUp(t *testing.T, names ...string) (given []string) {
	for _, name := range names {
		if _, taints := h.ready(t, name); slices.ContainsFunc(taints, func(taint string) bool {
			return taint == "node.kubernetes.io/unreachable:NoExecute" || taint == "node.kubernetes.io/not-ready:NoExecute"
		}) {
			given = append(given, name)
		}
	}
	return given
}

// If no node at all is heard of, the network has failed and not the nodes: no
// pod is evicted, not even from the node that was given up before the others
// fell silent.
func TestNobodyIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := run(t, newNodeLifecycle, node("n1", corev1.ConditionTrue), node("n2", corev1.ConditionTrue), node("n3", corev1.ConditionTrue))
		h.tell("n1", corev1.ConditionFalse)
		if given := h.givenUp(t, "n1"); given != nil {
			t.Errorf("given up before it was seen whether others go, too: %v", given)
		}
		pass(outageDelay)
		if given := h.givenUp(t, "n1", "n2", "n3"); !slices.Equal(given, []string{"n1"}) {
			t.Fatalf("given up: %v", given)
		}
		pass(nodeGrace)
		if given := h.givenUp(t, "n1", "n2", "n3"); given != nil {
			t.Errorf("given up while no node is heard of: %v", given)
		}
		if ready, taints := h.ready(t, "n3"); ready.Status != corev1.ConditionUnknown ||
			!slices.Equal(taints, []string{"node.kubernetes.io/unreachable:NoSchedule"}) {
			t.Errorf("%v %v", ready.Status, taints)
		}
		pass(time.Hour)
		if given := h.givenUp(t, "n1", "n2", "n3"); given != nil {
			t.Errorf("given up after an hour: %v", given)
		}
		h.tell("n2", corev1.ConditionTrue)
		pass(time.Second)
		if given := h.givenUp(t, "n1", "n2", "n3"); len(given) != 1 || given[0] == "n2" {
			t.Errorf("given up at once when one is back: %v", given)
		}
		pass(evictionPeriod)
		if given := h.givenUp(t, "n1", "n2", "n3"); !slices.Equal(given, []string{"n1", "n3"}) {
			t.Errorf("given up when one is back: %v", given)
		}
	})
}

// In a small zone that is mostly not ready, no more nodes are given up, in a
// large one few; in a zone that is completely lost, at the normal pace.
func TestPaceOfAZone(t *testing.T) {
	for _, test := range []struct {
		nodes, sick int
		want        time.Duration
	}{
		{1, 1, evictionPeriod}, {3, 1, evictionPeriod}, {3, 2, evictionPeriod}, {4, 3, 0}, {20, 10, evictionPeriod}, {20, 11, 0}, {20, 20, evictionPeriod},
		{50, 40, 0}, {51, 40, reducedEvictionPeriod}, {51, 20, evictionPeriod},
	} {
		if got := (&zoneHealth{nodes: test.nodes, unready: test.sick}).evictionInterval(); got != test.want {
			t.Errorf("%d of %d: %v, want %v", test.sick, test.nodes, got, test.want)
		}
	}
}

// Nodes that fall silent together are given up one by one.
func TestOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []core.Object
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprint("n", i))
			objects = append(objects, node(names[i], corev1.ConditionTrue))
		}
		h := run(t, newNodeLifecycle, objects...)
		for _, name := range names[:2] {
			h.tell(name, corev1.ConditionFalse)
		}
		for given, wait := range []time.Duration{outageDelay - time.Second, time.Second, evictionPeriod} {
			pass(wait)
			if got := h.givenUp(t, names...); len(got) != given {
				t.Errorf("%d are given up: %v, want %d", len(got), got, given)
			}
		}
		h.tell(names[0], corev1.ConditionTrue)
		if got := h.givenUp(t, names...); !slices.Equal(got, names[1:2]) {
			t.Errorf("given up after one is back: %v", got)
		}
	})
}

// unwatched are leases whose events never come.
type unwatched struct{ registry.Resource }

func (u unwatched) Watch(ctx context.Context, _ string, _ registry.ListOptions) (registry.Watcher, error) {
	return nothing{ctx}, nil
}

type nothing struct{ ctx context.Context }

func (n nothing) Events() iter.Seq2[registry.WatchEvent, bool] {
	return func(func(registry.WatchEvent, bool) bool) { <-n.ctx.Done() }
}

// TestAWatchThatIsBehind: a node whose renewals are stored but not yet seen is
// not lost; it is when the renewals end.
func TestAWatchThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{
			nodes: registrytest.New(core.Nodes), leases: registrytest.New(core.Leases), pods: registrytest.New(core.Pods),
			events: registrytest.New(core.Events),
		}
		for _, name := range []string{"renews", "silent"} {
			h.nodes.Put(node(name, corev1.ConditionTrue))
			h.leases.Put(lease(name, time.Now()))
		}
		start(t, newNodeLifecycle, h.pods, h.nodes, unwatched{h.leases}, h.events)
		pass(nodeGrace - time.Second)
		h.leases.Put(lease("renews", time.Now()))
		pass(2 * time.Second)
		if ready, _ := h.ready(t, "renews"); ready.Status != corev1.ConditionTrue {
			t.Errorf("a node that renews its lease: %+v", ready)
		}
		if ready, _ := h.ready(t, "silent"); ready.Status != corev1.ConditionUnknown {
			t.Errorf("a node that does not: %+v", ready)
		}
	})
}
