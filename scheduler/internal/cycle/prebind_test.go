package cycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/waitingpods"
)

// slow is a PreBind plugin that takes minutes for pods with a certain name.
type slow struct {
	prefix string
	takes  time.Duration
	fails  error
}

func (*slow) Name() string { return "Slow" }

func (s *slow) PreFilter(_ context.Context, state *framework.CycleState, pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	if strings.HasPrefix(pod.Pod.Name, s.prefix) {
		state.Write("Slow", true)
	}
	return nil, nil
}

// PreBindTakesLong implements framework.LongPreBind.
func (*slow) PreBindTakesLong(state *framework.CycleState) bool { return state.Read("Slow") != nil }

func (s *slow) PreBind(ctx context.Context, state *framework.CycleState, _ *framework.PodInfo, _ string) *framework.Status {
	if !s.PreBindTakesLong(state) {
		return nil
	}
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return framework.AsError(ctx.Err())
	}
	if s.fails != nil {
		return framework.AsError(s.fails)
	}
	return nil
}

func withSlow(s *slow) plugged {
	return func(p *framework.Profile, _ *waitingpods.Map) {
		p.PreFilter, p.PreBind = append(p.PreFilter, s), append(p.PreBind, s)
	}
}

// Many pods that wait for their volumes don't block other pods. They keep their
// room, which counts once, and are nominated to the node.
func TestLongPreBindHoldsNobodyUp(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1", fixture.Allocatable("pods", fmt.Sprint(2*maxBindings+1)))}, func(t *testing.T, c *cluster, _ *running) {
		for i := range 2 * maxBindings {
			c.create(fixture.Pod(fmt.Sprint("slow-", i)))
		}
		synctest.Wait()
		c.create(fixture.Pod("quick"))
		synctest.Wait()
		if c.nodeOf("quick") != "n1" || c.nodeOf("slow-0") != "" {
			t.Fatalf("quick is on %q, slow-0 on %q", c.nodeOf("quick"), c.nodeOf("slow-0"))
		}
		if slow, err := c.Pod(t.Context(), "", "slow-0"); err != nil || slow.Status.NominatedNodeName != "n1" {
			t.Errorf("slow-0 is nominated to %q (%v), want n1", slow.Status.NominatedNodeName, err)
		}
		time.Sleep(6 * time.Minute)
		for i := range 2 * maxBindings {
			if name := fmt.Sprint("slow-", i); c.nodeOf(name) != "n1" {
				t.Errorf("%s is on %q", name, c.nodeOf(name))
			}
		}
	}, withSlow(&slow{prefix: "slow", takes: 5 * time.Minute}))
}

// A failed PreBind releases the pod's resources, the event says why, and the pod names
// its node no longer, even if the watch has not shown yet that it did.
func TestLongPreBindFails(t *testing.T) {
	for _, lag := range []time.Duration{0, 15 * time.Second} {
		withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, _ *running) {
			c.lag = lag
			c.create(fixture.Pod("slow", fixture.Requests("cpu", "4")))
			synctest.Wait()
			c.create(fixture.Pod("other", fixture.Requests("cpu", "4")))
			time.Sleep(20 * time.Second)
			if c.nodeOf("other") != "n1" || c.nodeOf("slow") != "" || !strings.Contains(c.said(), "no such disk") {
				t.Errorf("other is on %q, slow on %q; said:\n%s", c.nodeOf("other"), c.nodeOf("slow"), c.said())
			}
			if slow, err := c.Pod(t.Context(), "", "slow"); err != nil || slow.Status.NominatedNodeName != "" {
				t.Errorf("with a watch that lags by %v, slow is still nominated to %q (%v)", lag, slow.Status.NominatedNodeName, err)
			}
		}, withSlow(&slow{prefix: "slow", takes: 10 * time.Second, fails: errors.New("no such disk")}))
	}
}

// A pod whose PreBind plugins still run gives way to a more important one without ending.
func TestPreemptedInPreBind(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, _ *running) {
		c.create(fixture.Pod("slow", fixture.Requests("cpu", "4")))
		synctest.Wait()
		c.create(fixture.Pod("important", fixture.Requests("cpu", "4"), fixture.Priority(10)))
		time.Sleep(time.Minute)
		if c.nodeOf("important") != "n1" || !c.has("slow") || c.nodeOf("slow") != "" || !strings.Contains(c.said(), "preempted by DefaultPreemption") {
			t.Errorf("important is on %q, slow is there: %v, on %q; said:\n%s", c.nodeOf("important"), c.has("slow"), c.nodeOf("slow"), c.said())
		}
	}, withSlow(&slow{prefix: "slow", takes: 10 * time.Minute}))
}
