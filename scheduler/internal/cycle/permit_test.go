package cycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/waitingpods"
)

// gate is a Permit plugin that answers what the test wants.
type gate struct {
	name    string
	answer  func(pod *core.Pod) (*framework.Status, time.Duration)
	waiting *waitingpods.Map
}

func (g *gate) Name() string { return g.name }

func (g *gate) Permit(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, _ string) (*framework.Status, time.Duration) {
	return g.answer(pod.Pod)
}

// EventsToRegister implements framework.EnqueueExtensions.
func (g *gate) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{{Resource: framework.NodeEvent, ActionType: framework.UpdateNodeLabel}}
}

// waitFor makes pods with that name prefix wait.
func waitFor(name, prefix string, wait time.Duration) *gate {
	return &gate{name: name, answer: func(pod *core.Pod) (*framework.Status, time.Duration) {
		if strings.HasPrefix(pod.Name, prefix) {
			return framework.NewStatus(framework.Wait), wait
		}
		return nil, 0
	}}
}

func plug(gates ...*gate) plugged {
	return func(p *framework.Profile, waiting *waitingpods.Map) {
		for _, g := range gates {
			g.waiting = waiting
			p.Permit = append(p.Permit, g)
		}
	}
}

func whole(name string) *core.Pod { return fixture.Pod(name, fixture.Requests("cpu", "4")) }

func TestPermit(t *testing.T) {
	one := []*core.Node{fixture.Node("n1")}
	t.Run("every plugin that has a pod wait must allow it", func(t *testing.T) {
		a, b := waitFor("A", "p", time.Minute), waitFor("B", "p", time.Minute)
		withScheduler(t, one, func(t *testing.T, c *cluster, _ *running) {
			c.create(whole("p"))
			synctest.Wait()
			pod, waits := a.waiting.Get(c.stored()["p"].UID)
			if !waits || pod.Node() != "n1" || len(pod.Pending()) != 2 {
				t.Fatalf("waits: %v, %v", waits, pod)
			}
			pod.Allow("A")
			synctest.Wait()
			if c.nodeOf("p") != "" {
				t.Error("bound though B has not allowed it")
			}
			time.Sleep(5 * time.Second)
			allowed := time.Now()
			pod.Allow("B")
			synctest.Wait()
			if want := (relay.Stamp{Hop: relay.SchedulerPermitted, At: allowed}); !slices.Contains(c.stamps, want) {
				t.Errorf("stamps: %v, want %v", c.stamps, want)
			}
			if c.nodeOf("p") != "n1" || len(a.waiting.All()) != 0 {
				t.Errorf("is on %q; %d wait", c.nodeOf("p"), len(a.waiting.All()))
			}
		}, plug(a, b))
	})
	t.Run("its room is kept, and given back when its time is over", func(t *testing.T) {
		g := waitFor("A", "p", 10*time.Second)
		withScheduler(t, one, func(t *testing.T, c *cluster, _ *running) {
			c.create(whole("p"))
			synctest.Wait()
			c.create(whole("q"))
			time.Sleep(9 * time.Second)
			if c.nodeOf("q") != "" {
				t.Error("another pod has the room of one that waits")
			}
			time.Sleep(time.Minute)
			if c.nodeOf("q") != "n1" || c.nodeOf("p") != "" {
				t.Errorf("q is on %q, p on %q", c.nodeOf("q"), c.nodeOf("p"))
			}
			if want := "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin A."; !strings.Contains(c.said(), want) {
				t.Errorf("no event says %q:\n%s", want, c.said())
			}
		}, plug(g))
	})
	t.Run("rejected, at once or while it waits", func(t *testing.T) {
		g := waitFor("A", "p", time.Minute)
		no := &gate{name: "B", answer: func(pod *core.Pod) (*framework.Status, time.Duration) {
			if pod.Name == "no" {
				return framework.NewStatus(framework.Unschedulable, "not you"), 0
			}
			return nil, 0
		}}
		withScheduler(t, one, func(t *testing.T, c *cluster, s *running) {
			c.create(whole("no"))
			synctest.Wait()
			c.create(whole("p"))
			synctest.Wait()
			g.waiting.Reject(c.stored()["p"].UID, "A", "not today")
			synctest.Wait()
			if want := "no: 0/1 nodes are available: 1 not you.\np: 0/1 nodes are available: 1 not today."; c.said() != want {
				t.Errorf("said %q, want %q", c.said(), want)
			}
			if s.queue.Pending()["unschedulable"] != 2 {
				t.Errorf("queue: %v", s.queue.Pending())
			}
		}, plug(g, no))
	})
	t.Run("deleted while it waits", func(t *testing.T) {
		g := waitFor("A", "p", 14*time.Minute)
		withScheduler(t, one, func(t *testing.T, c *cluster, s *running) {
			c.create(whole("p"))
			synctest.Wait()
			c.delete("p")
			c.create(whole("q"))
			synctest.Wait()
			if c.nodeOf("q") != "n1" || len(g.waiting.All()) != 0 {
				t.Errorf("q is on %q; %d wait", c.nodeOf("q"), len(g.waiting.All()))
			}
			if strings.Contains(c.said(), "p:") {
				t.Errorf("words about a pod that is gone: %s", c.said())
			}
		}, plug(g))
	})
	t.Run("those that wait do not hold up those that don't", func(t *testing.T) {
		nodes := []*core.Node{fixture.Node("n1", fixture.Allocatable("pods", "1000"))}
		withScheduler(t, nodes, func(t *testing.T, c *cluster, _ *running) {
			for i := range 3 * maxBindings {
				c.create(fixture.Pod(fmt.Sprint("p", i)))
			}
			synctest.Wait()
			c.create(fixture.Pod("quick"))
			synctest.Wait()
			if c.nodeOf("quick") != "n1" {
				t.Error("a pod that no plugin makes wait is not bound")
			}
		}, plug(waitFor("A", "p", time.Hour)))
	})
	t.Run("the scheduler stops", func(t *testing.T) {
		g := waitFor("A", "p", time.Hour)
		withScheduler(t, one, func(t *testing.T, c *cluster, s *running) {
			c.create(whole("p"))
			synctest.Wait()
			began := time.Now()
			s.stop()
			if took := time.Since(began); took > bindGrace {
				t.Errorf("took %s", took)
			}
			if _, pods, _ := s.cache.Sizes(); pods != 0 || c.nodeOf("p") != "" {
				t.Errorf("%d pods count; p is on %q", pods, c.nodeOf("p"))
			}
		}, plug(g))
	})
}

func TestPermitLastsAQuarterOfAnHourAtMost(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, _ *running) {
		c.create(whole("p"))
		time.Sleep(15*time.Minute + time.Second)
		if want := "rejected due to timeout after waiting 15m0s at plugin A"; !strings.Contains(c.said(), want) {
			t.Errorf("no event says %q:\n%s", want, c.said())
		}
	}, plug(waitFor("A", "p", 24*time.Hour)))
}

// A pod that waits for permission gives its resources to a more important one,
// and need not end for it.
func TestPreemptedWhileItWaits(t *testing.T) {
	g := waitFor("A", "p", 14*time.Minute)
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, _ *running) {
		c.create(whole("p"))
		synctest.Wait()
		c.create(fixture.Pod("important", fixture.Requests("cpu", "4"), fixture.Priority(10)))
		time.Sleep(time.Minute)
		if c.nodeOf("important") != "n1" || !c.has("p") || c.nodeOf("p") != "" {
			t.Errorf("important is on %q, p is there: %v, on %q; said:\n%s", c.nodeOf("important"), c.has("p"), c.nodeOf("p"), c.said())
		}
	}, plug(g))
}

// So does one that has been allowed and waits for a slot, all of which Bindings without
// an answer occupy.
func TestPreemptedWhileItWaitsForASlot(t *testing.T) {
	g := waitFor("A", "permitted", 14*time.Minute)
	only := func(what string) func(*core.Pod) {
		return func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"for": what} }
	}
	nodes := []*core.Node{
		fixture.Node("n1", fixture.Label("for", "whole")),
		fixture.Node("n2", fixture.Label("for", "small"), fixture.Allocatable("pods", "1000")),
	}
	withScheduler(t, nodes, func(t *testing.T, c *cluster, _ *running) {
		c.create(fixture.Pod("permitted", fixture.Requests("cpu", "4"), only("whole")))
		synctest.Wait()
		back := serverAway(c, 0)
		for i := range maxBindings {
			c.create(fixture.Pod(fmt.Sprint("stuck-", i), only("small")))
		}
		synctest.Wait()
		waiting, _ := g.waiting.Get(c.stored()["permitted"].UID)
		waiting.Allow("A")
		synctest.Wait()
		c.create(fixture.Pod("important", fixture.Requests("cpu", "4"), only("whole"), fixture.Priority(10)))
		synctest.Wait()
		back()
		time.Sleep(time.Minute)
		if c.nodeOf("important") != "n1" || !c.has("permitted") || c.nodeOf("permitted") != "" {
			t.Errorf("important is on %q, permitted is there: %v, on %q; said:\n%s", c.nodeOf("important"), c.has("permitted"), c.nodeOf("permitted"), c.said())
		}
	}, plug(g))
}

// A plugin that is preparing what the pod needs gets it retried without
// back-off when its event comes, and not before.
func TestPending(t *testing.T) {
	ready := false
	g := &gate{name: "A", answer: func(*core.Pod) (*framework.Status, time.Duration) {
		if !ready {
			return framework.NewStatus(framework.Pending, "a device is being attached"), 0
		}
		return nil, 0
	}}
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
		c.create(fixture.Pod("p"))
		synctest.Wait()
		if want := "p: 0/1 nodes are available: 1 a device is being attached."; c.said() != want {
			t.Errorf("said %q, want %q", c.said(), want)
		}
		if s.queue.Pending()["unschedulable"] != 1 {
			t.Errorf("queue: %v", s.queue.Pending())
		}
		ready = true
		began := time.Now()
		s.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{
			Resource: framework.NodeEvent, ActionType: framework.UpdateNodeLabel, NewNode: fixture.Node("n1"),
		})
		synctest.Wait()
		if c.nodeOf("p") != "n1" || time.Since(began) != 0 {
			t.Errorf("is on %q after %s", c.nodeOf("p"), time.Since(began))
		}
	}, plug(g))
}
