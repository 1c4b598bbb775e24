package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

func newCache() (*Cache, *clocktesting.FakeClock) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	return New(clock, time.Minute), clock
}

func info(pod *core.Pod) *framework.PodInfo { return framework.NewPodInfo(pod) }

// cpuOn is the CPU that the cache counts on a node.
func cpuOn(t *testing.T, c *Cache, node string) int64 {
	t.Helper()
	s := NewSnapshot()
	c.Update(s)
	n, ok := s.Node(node)
	if !ok {
		t.Fatalf("node %s is not in the snapshot", node)
	}
	return n.Requested.MilliCPU
}

func TestAssumedPodCountsOnceWhateverHappens(t *testing.T) {
	pod := fixture.Pod("a", fixture.Requests("cpu", "1"))
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "n1"
	elsewhere := pod.DeepCopy()
	elsewhere.Spec.NodeName = "n2"
	tests := map[string]struct {
		do     func(c *Cache, clock *clocktesting.FakeClock)
		n1, n2 int64
	}{
		"assumed":                    {func(*Cache, *clocktesting.FakeClock) {}, 1000, 0},
		"forgotten":                  {func(c *Cache, _ *clocktesting.FakeClock) { c.Forget(pod.UID) }, 0, 0},
		"confirmed":                  {func(c *Cache, _ *clocktesting.FakeClock) { c.SetPod(bound) }, 1000, 0},
		"confirmed, then forgotten":  {func(c *Cache, _ *clocktesting.FakeClock) { c.SetPod(bound); c.Forget(pod.UID) }, 1000, 0},
		"bound elsewhere by another": {func(c *Cache, _ *clocktesting.FakeClock) { c.SetPod(elsewhere) }, 0, 1000},
		"deleted":                    {func(c *Cache, _ *clocktesting.FakeClock) { c.RemovePod(pod.UID) }, 0, 0},
		"never bound": {func(c *Cache, clock *clocktesting.FakeClock) {
			clock.Step(time.Hour)
			c.Expire()
		}, 1000, 0},
		"bound, not yet expired": {func(c *Cache, clock *clocktesting.FakeClock) {
			c.FinishBinding(pod.UID)
			clock.Step(time.Minute - time.Second)
			c.Expire()
		}, 1000, 0},
		"bound and never seen": {func(c *Cache, clock *clocktesting.FakeClock) {
			c.FinishBinding(pod.UID)
			clock.Step(time.Minute)
			c.Expire()
		}, 0, 0},
		"bound, seen, much later": {func(c *Cache, clock *clocktesting.FakeClock) {
			c.FinishBinding(pod.UID)
			c.SetPod(bound)
			clock.Step(time.Hour)
			c.Expire()
		}, 1000, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, clock := newCache()
			c.SetNode(fixture.Node("n1"))
			c.SetNode(fixture.Node("n2"))
			if err := c.Assume(info(pod), "n1"); err != nil {
				t.Fatal(err)
			}
			test.do(c, clock)
			if n1, n2 := cpuOn(t, c, "n1"), cpuOn(t, c, "n2"); n1 != test.n1 || n2 != test.n2 {
				t.Errorf("n1 has %dm, n2 %dm; want %dm and %dm", n1, n2, test.n1, test.n2)
			}
		})
	}
}

func TestPodThatCountsCannotBeAssumed(t *testing.T) {
	c, _ := newCache()
	pod := fixture.Pod("a", fixture.On("n1"))
	c.SetPod(pod)
	if err := c.Assume(info(pod), "n2"); err == nil {
		t.Error("assumed a pod that the API has on a node")
	}
}

func TestNodeThatComesBackFindsItsPods(t *testing.T) {
	c, _ := newCache()
	c.SetPod(fixture.Pod("a", fixture.On("n1"), fixture.Requests("cpu", "1"))) // before its node is known
	c.SetNode(fixture.Node("n1"))
	c.RemoveNode("n1")
	s := NewSnapshot()
	c.Update(s)
	if len(s.Nodes()) != 0 {
		t.Fatal("a removed node is in the snapshot")
	}
	c.SetNode(fixture.Node("n1"))
	if cpu := cpuOn(t, c, "n1"); cpu != 1000 {
		t.Errorf("%dm counted, want 1000m", cpu)
	}
}

func TestHugeRequestsDoNotWrapAround(t *testing.T) {
	c, _ := newCache()
	c.SetNode(fixture.Node("n1"))
	small := fixture.Pod("s", fixture.On("n1"), fixture.Requests("cpu", "1"))
	c.SetPod(small)
	for i := range 3 {
		c.SetPod(fixture.Pod(fmt.Sprint("huge", i), fixture.On("n1"), fixture.Requests("cpu", "9e18", "memory", "9e18")))
	}
	if cpu := cpuOn(t, c, "n1"); cpu <= 0 {
		t.Errorf("sum of huge requests is %d", cpu)
	}
	for uid := range maps.Clone(c.pods) {
		if uid != small.UID {
			c.RemovePod(uid)
		}
	}
	if cpu := cpuOn(t, c, "n1"); cpu != 1000 {
		t.Errorf("%dm left after the huge pods went, want 1000m", cpu)
	}
}

// TestRandomWalk compares the incremental snapshot, after random changes, with
// a fresh one, and both with a simple model.
func TestRandomWalk(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			walk(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

type model struct {
	nodes map[string]bool
	pods  map[types.UID]string // the node on which each counts
	milli map[types.UID]int64
}

func walk(t *testing.T, random *rand.Rand) {
	c, clock := newCache()
	incremental := NewSnapshot()
	m := model{nodes: map[string]bool{}, pods: map[types.UID]string{}, milli: map[types.UID]int64{}}
	var pods []*core.Pod
	node := func() string { return fmt.Sprint("n", random.IntN(8)) }
	for step := range 500 {
		name := node()
		switch random.IntN(7) {
		case 0:
			c.SetNode(fixture.Node(name))
			m.nodes[name] = true
		case 1:
			c.RemoveNode(name)
			delete(m.nodes, name)
		case 2, 3:
			cpu := random.Int64N(1000) + 1
			pod := fixture.Pod(fmt.Sprint("p", step), fixture.Requests("cpu", fmt.Sprintf("%dm", cpu)))
			pods = append(pods, pod)
			if err := c.Assume(info(pod), name); err != nil {
				t.Fatal(err)
			}
			m.pods[pod.UID], m.milli[pod.UID] = name, cpu
		default:
			if len(pods) == 0 {
				continue
			}
			pod := pods[random.IntN(len(pods))]
			if _, counts := m.pods[pod.UID]; !counts {
				continue
			}
			switch random.IntN(3) {
			case 0:
				c.RemovePod(pod.UID)
				delete(m.pods, pod.UID)
			case 1:
				seen := pod.DeepCopy()
				seen.Spec.NodeName = name
				c.SetPod(seen)
				m.pods[pod.UID] = name
			case 2:
				if c.Forget(pod.UID) {
					delete(m.pods, pod.UID)
				}
			}
		}
		if random.IntN(3) == 0 {
			c.Update(incremental)
			compare(t, step, c, incremental, m)
		}
	}
	clock.Step(time.Hour)
}

func compare(t *testing.T, step int, c *Cache, incremental *Snapshot, m model) {
	t.Helper()
	fresh := NewSnapshot()
	c.Update(fresh)
	if len(incremental.Nodes()) != len(m.nodes) || len(fresh.Nodes()) != len(m.nodes) {
		t.Fatalf("step %d: %d nodes, from nothing %d, want %d", step, len(incremental.Nodes()), len(fresh.Nodes()), len(m.nodes))
	}
	for name := range m.nodes {
		var want int64
		var count int
		for uid, on := range m.pods {
			if on == name {
				want += m.milli[uid]
				count++
			}
		}
		for _, s := range []*Snapshot{incremental, fresh} {
			n, ok := s.Node(name)
			if !ok || n.Node.Name != name || n.Requested.MilliCPU != want || len(n.Pods) != count {
				t.Fatalf("step %d: node %s is %+v, want %d pods with %dm", step, name, n, count, want)
			}
		}
	}
	if !slices.IsSortedFunc(incremental.Nodes(), func(a, b *framework.NodeInfo) int {
		return len(a.Node.Name) - len(b.Node.Name)
	}) {
		t.Errorf("step %d: nodes out of order", step)
	}
}

// A cluster that gets new nodes every day does not make the cache grow: of those that are
// gone, with their pods, nothing is kept, in whatever order they go.
func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	pod := fixture.Pod("a", fixture.On("n"))
	for name, do := range map[string]func(c *Cache){
		"the pod first":  func(c *Cache) { c.RemovePod(pod.UID); c.RemoveNode("n") },
		"the node first": func(c *Cache) { c.RemoveNode("n"); c.RemovePod(pod.UID) },
	} {
		c, _ := newCache()
		c.SetNode(fixture.Node("n"))
		c.SetPod(pod)
		c.SetNode(fixture.Node("other"))
		do(c)
		if len(c.nodes) != 1 || len(c.pods) != 0 {
			t.Errorf("%s: %d nodes and %d pods are known", name, len(c.nodes), len(c.pods))
		}
		for e := c.byChange.Front(); e != nil; e = e.Next() {
			if e.Value.(*node).info.Name() != "other" {
				t.Errorf("%s: a node that is gone is among the changed ones", name)
			}
		}
	}
}
