package cycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/eventhandlers"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/plugins/defaultpreemption"
	"kctl/scheduler/internal/profile"
	"kctl/scheduler/internal/queue"
	"kctl/scheduler/internal/waitingpods"
)

// withScheduler runs the real queue, cache, event handlers and cycle on the cluster, in
// fake time, and stops them when the test ends.
func withScheduler(t *testing.T, nodes []*core.Node, test func(t *testing.T, c *cluster, s *running), plugins ...plugged) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{pods: map[string]*core.Pod{}, bindings: map[string]int{}, bound: map[string]int{}}
		s := startScheduler(t, c, plugins...)
		for _, node := range nodes {
			c.nodes.Apply(watch.Added, node)
		}
		test(t, c, s)
		s.stop()
	})
}

type running struct {
	queue   *queue.Queue
	cache   *cache.Cache
	metrics *metrics.Metrics
	stop    func()
}

// plugged adds a test's plugin to a profile.
type plugged func(p *framework.Profile, waiting *waitingpods.Map)

func startScheduler(t *testing.T, c *cluster, plugins ...plugged) *running {
	t.Helper()
	configuration, err := profile.Default()
	if err != nil {
		t.Fatal(err)
	}
	nominated := nominator.New()
	c.nominator = nominated
	waiting := waitingpods.New(clock.RealClock{})
	c.waitingPods = waiting
	s := &running{cache: cache.New(clock.RealClock{}, cache.DefaultExpiry), metrics: metrics.New()}
	profiles, err := configuration.Build(profile.Services{Preemption: defaultpreemption.Services{
		Nominator: nominated,
		Executor:  c,
		Extenders: c.extenders,
		Budgets:   func(string) []*policyv1.PodDisruptionBudget { return c.budgets },
		Activate:  func(uid types.UID) { s.queue.Activate(uid) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range profiles {
		p.Bind = []framework.Bind{c}
		for _, plugin := range plugins {
			plugin(p, waiting)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.queue = queue.New(queue.Options{
		Profiles: profiles, Clock: clock.RealClock{}, Backoff: queue.DefaultBackoff, FlushAfter: queue.DefaultFlushAfter,
		Incoming: s.metrics.Incoming, Handled: s.metrics.Handled, Hinted: s.metrics.Hinted,
	})
	nominated.OnRelease(func(pod *core.Pod) {
		s.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{
			Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: pod, Nominated: true,
		})
	})
	handlers := eventhandlers.New(ctx, eventhandlers.Slim, s.queue, s.cache, nominated, waiting)
	c.sink, c.nodes = handlers.Pods(), handlers.Nodes()
	scheduler := &Scheduler{
		Profiles: profiles, Queue: s.queue, Cache: s.cache, Reporter: c, Pods: c, Nominator: nominated, WaitingPods: waiting, Extenders: c.extenders,
		Clock: clock.RealClock{}, Logger: zap.NewNop(), Metrics: s.metrics, Leading: func() bool { return !c.stopped.Load() },
	}
	var group sync.WaitGroup
	group.Go(func() { _ = s.queue.Run(ctx) })
	group.Go(func() { _ = scheduler.Run(ctx) })
	s.stop = func() {
		cancel()
		group.Wait()
	}
	return s
}

func TestPodsSpreadOverNodesAndFillThem(t *testing.T) {
	nodes := []*core.Node{fixture.Node("n1"), fixture.Node("n2"), fixture.Node("n3")}
	withScheduler(t, nodes, func(t *testing.T, c *cluster, _ *running) {
		for i := range 13 {
			c.create(fixture.Pod(fmt.Sprint("p", i), fixture.Requests("cpu", "1")))
		}
		synctest.Wait()
		on := map[string]int{}
		for _, pod := range c.stored() {
			on[pod.Spec.NodeName]++
		}
		if on["n1"] != 4 || on["n2"] != 4 || on["n3"] != 4 || on[""] != 1 {
			t.Errorf("pods by node: %v, want 4 on each and 1 left", on)
		}
		if want := "0/3 nodes are available: 3 Insufficient cpu."; !strings.Contains(c.said(), want) {
			t.Errorf("no event says %q:\n%s", want, c.said())
		}
		for name := range c.stored() {
			if c.nodeOf(name) == "n2" {
				c.delete(name)
				break
			}
		}
		synctest.Wait()
		for name := range c.stored() {
			if c.nodeOf(name) == "" {
				t.Errorf("%s still waits though a pod went", name)
			}
		}
	})
}

func TestWordsForNoNode(t *testing.T) {
	tainted := fixture.Taint("key", "value", corev1.TaintEffectNoSchedule)
	mixed := []*core.Node{
		fixture.Node("n1", fixture.Allocatable("cpu", "1")), fixture.Node("n2", tainted), fixture.Node("n3", tainted),
		fixture.Node("n4", func(n *core.Node) { n.Spec.Unschedulable = true }),
	}
	byName := func(p *core.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
				Values: []string{"n2"}}}}},
		}}}
	}
	for name, test := range map[string]struct {
		nodes []*core.Node
		pod   *core.Pod
		want  string
	}{
		"no nodes": {nil, fixture.Pod("p"), "p: no nodes available to schedule pods"},
		"counted and sorted": {mixed, fixture.Pod("p", fixture.Requests("cpu", "2")),
			"p: 0/4 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s). preemption: 0/4 nodes are available: 4 " +
				"Preemption is not helpful for scheduling."},
		"left out by name": {mixed, fixture.Pod("p", byName),
			"p: 0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: 0/4 nodes are available: " +
				"4 Preemption is not helpful for scheduling."},
		"for all nodes at once": {mixed, fixture.Pod("p", func(p *core.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{}} }),
			"p: 0/4 nodes are available: spec.resourceClaims is not supported by this scheduler (it has no DynamicResources plugin). preemption: 0/4 nodes are " +
				"available: 4 Preemption is not helpful for scheduling."},
	} {
		t.Run(name, func(t *testing.T) {
			withScheduler(t, test.nodes, func(t *testing.T, c *cluster, _ *running) {
				c.create(test.pod)
				synctest.Wait()
				if c.said() != test.want {
					t.Errorf("said %q\nwant %q", c.said(), test.want)
				}
			})
		})
	}
}

func TestBindingFaults(t *testing.T) {
	resource := core.Pods.GVR().GroupResource()
	once := func(f fault) func(string, int) *fault {
		return func(_ string, n int) *fault {
			if n == 1 {
				return &f
			}
			return nil
		}
	}
	for name, f := range map[string]fault{
		"500":                     {err: apierrors.NewInternalError(errors.New("etcd"))},
		"503":                     {err: apierrors.NewServiceUnavailable("no")},
		"409":                     {err: apierrors.NewConflict(resource, "p", errors.New("being deleted"))},
		"403":                     {err: apierrors.NewForbidden(resource, "p", errors.New("no right"))},
		"connection lost":         {err: io.EOF},
		"lost, but carried out":   {err: io.EOF, carried: true},
		"500, but carried out":    {err: apierrors.NewInternalError(errors.New("late")), carried: true},
		"timeout":                 {hang: true},
		"timeout, but carried on": {hang: true, carried: true},
	} {
		t.Run(name, func(t *testing.T) {
			withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
				c.fault = once(f)
				// Both fit only if nothing is counted that is gone.
				c.create(fixture.Pod("p", fixture.Requests("cpu", "2")))
				c.create(fixture.Pod("q", fixture.Requests("cpu", "2")))
				time.Sleep(5 * time.Minute)
				for _, pod := range []string{"p", "q"} {
					if c.nodeOf(pod) == "" || c.times(c.bound, pod) != 1 {
						t.Errorf("%s is on %q, bound %d times", pod, c.nodeOf(pod), c.times(c.bound, pod))
					}
				}
				if _, pods, assumed := s.cache.Sizes(); pods != 2 || assumed != 0 {
					t.Errorf("the cache counts %d pods, %d of them assumed; want 2, 0", pods, assumed)
				}
				for part, n := range s.queue.Pending() {
					if n != 0 {
						t.Errorf("%d pods left in %s", n, part)
					}
				}
			})
		})
	}
}

func TestLostAnswerIsFoundOutBeforeTheWatchTells(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
		c.lag = 10 * time.Second
		c.fault = func(string, int) *fault { return &fault{err: io.EOF, carried: true} }
		c.create(fixture.Pod("p", fixture.Requests("cpu", "4")))
		c.create(fixture.Pod("q", fixture.Requests("cpu", "4")))
		time.Sleep(5 * time.Second)
		if _, pods, assumed := s.cache.Sizes(); pods != 1 || assumed != 1 {
			t.Errorf("the cache counts %d pods, %d assumed; want the one that was bound", pods, assumed)
		}
		time.Sleep(time.Minute)
		if c.times(c.bindings, "p") != 2 || c.times(c.bindings, "q") != 0 {
			t.Errorf("bindings sent: %v for p, %v for q, want one that was carried out, one that was answered, and none for q",
				c.times(c.bindings, "p"), c.times(c.bindings, "q"))
		}
	})
}

func TestStopsInTimeThoughTheServerHangs(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
		c.fault = func(string, int) *fault { return &fault{hang: true} }
		for i := range maxBindings + 5 { // one waits for a binding slot
			c.create(fixture.Pod(fmt.Sprint("p", i)))
		}
		synctest.Wait()
		began := time.Now()
		s.stop()
		if took := time.Since(began); took > bindGrace {
			t.Errorf("took %s to stop, more than the grace of %s", took, bindGrace)
		}
	})
}

func TestPodDeletedWhileItIsBound(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
		c.fault = func(pod string, _ int) *fault {
			if pod == "p" {
				return &fault{hang: true}
			}
			return nil
		}
		c.create(fixture.Pod("p", fixture.Requests("cpu", "4")))
		synctest.Wait()
		c.delete("p")
		c.create(fixture.Pod("q", fixture.Requests("cpu", "4")))
		synctest.Wait()
		if c.nodeOf("q") != "n1" {
			t.Error("the room of a deleted pod is not given to the next")
		}
		time.Sleep(time.Hour)
		if _, pods, _ := s.cache.Sizes(); pods != 1 {
			t.Errorf("the cache counts %d pods, want 1", pods)
		}
	})
}

func TestNodeGoneWhileAPodIsBoundToIt(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
		c.fault = func(_ string, n int) *fault {
			if n == 1 {
				return &fault{err: apierrors.NewInternalError(errors.New("slow"))}
			}
			return nil
		}
		c.create(fixture.Pod("p"))
		c.nodes.Apply(watch.Deleted, fixture.Node("n1"))
		time.Sleep(time.Minute)
		if c.nodeOf("p") != "" && c.times(c.bindings, "p") == 1 {
			t.Fatalf("bound by a binding that failed")
		}
		c.nodes.Apply(watch.Added, fixture.Node("n2"))
		time.Sleep(time.Minute)
		if got := c.nodeOf("p"); got == "" {
			t.Errorf("p has no node; said:\n%s", c.said())
		}
	})
}

func TestRestartInTheMiddleBindsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{pods: map[string]*core.Pod{}, bindings: map[string]int{}, bound: map[string]int{}}
		// Every other first binding is carried out, but its answer is lost.
		c.fault = func(pod string, n int) *fault {
			if n == 1 {
				return &fault{hang: true, carried: len(pod)%2 == 0}
			}
			return nil
		}
		first := startScheduler(t, c)
		node := fixture.Node("n1")
		c.nodes.Apply(watch.Added, node)
		for i := range 20 {
			c.create(fixture.Pod(fmt.Sprint("p", i)))
		}
		synctest.Wait()
		first.stop() // its bindings are given up
		second := startScheduler(t, c)
		c.nodes.Apply(watch.Added, node)
		var all []*core.Pod
		for _, pod := range c.stored() {
			all = append(all, pod.DeepCopy())
		}
		c.sink.Replace(all)
		time.Sleep(time.Minute)
		for name := range c.stored() {
			if c.nodeOf(name) == "" || c.times(c.bound, name) != 1 {
				t.Errorf("%s is on %q, bound %d times", name, c.nodeOf(name), c.times(c.bound, name))
			}
		}
		second.stop()
	})
}

func TestAnUnschedulablePodMakesNoWork(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, _ *running) {
		for i := range 50 {
			c.create(fixture.Pod(fmt.Sprint("p", i), fixture.Requests("cpu", "99")))
		}
		synctest.Wait()
		if n := c.count(); n != 50 {
			t.Fatalf("%d attempts, want 50", n)
		}
		time.Sleep(queue.DefaultFlushAfter - time.Second)
		if n := c.count(); n != 50 {
			t.Errorf("%d attempts though nothing happened, want 50", n)
		}
	})
}
