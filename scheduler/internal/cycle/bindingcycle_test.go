package cycle

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/internal/fixture"
)

// serverAway leaves all Bindings unanswered until the server is back; if late
// is not zero, p's is carried out after that time all the same.
func serverAway(c *cluster, late time.Duration) (back func()) {
	var here atomic.Bool
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = true
	c.fault = func(pod string, n int) *fault {
		switch {
		case here.Load():
			return nil
		case pod == "p" && n == 1:
			return &fault{err: io.EOF, late: late}
		}
		return &fault{err: io.EOF}
	}
	return func() {
		here.Store(true)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.away = false
	}
}

// A Binding whose answer was lost may be carried out at any time: until that is
// known, its pod keeps its resources, and nobody else's are given away.
func TestALostBindingKeepsItsRoom(t *testing.T) {
	for name, carried := range map[string]time.Duration{"carried out late": time.Minute, "never carried out": 0} {
		t.Run(name, func(t *testing.T) {
			withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
				c.lag = 20 * time.Second // the answer to the next one comes first
				back := serverAway(c, carried)
				c.create(fixture.Pod("p", fixture.Requests("cpu", "4")))
				synctest.Wait()
				c.create(fixture.Pod("q", fixture.Requests("cpu", "4")))
				time.Sleep(70 * time.Second)
				if n := c.times(c.bindings, "q"); n != 0 {
					t.Errorf("%d bindings of a second pod into the same room", n)
				}
				back()
				time.Sleep(time.Minute)
				if c.nodeOf("p") != "n1" || c.nodeOf("q") != "" || c.times(c.bound, "p") != 1 {
					t.Errorf("p is on %q, bound %d times, q on %q", c.nodeOf("p"), c.times(c.bound, "p"), c.nodeOf("q"))
				}
				if !strings.Contains(c.said(), "p → n1") {
					t.Errorf("no event says that p is on n1:\n%s", c.said())
				}
				if _, pods, assumed := s.cache.Sizes(); pods != 1 || assumed != 0 {
					t.Errorf("the cache counts %d pods, %d of them assumed", pods, assumed)
				}
			})
		})
	}
}

// A scheduler that may no longer lead sends no Bindings, and continues when it
// leads again.
func TestNothingIsBoundByWhoDoesNotLead(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
		c.stopped.Store(true)
		c.create(fixture.Pod("p"))
		time.Sleep(time.Minute)
		if n := c.times(c.bindings, "p"); n != 0 {
			t.Errorf("%d bindings", n)
		}
		c.stopped.Store(false)
		time.Sleep(time.Second)
		if c.nodeOf("p") != "n1" {
			t.Error("it is not bound")
		}
		c.stopped.Store(true)
		c.create(fixture.Pod("q"))
		synctest.Wait()
		s.stop() // must not hang
		if n := c.times(c.bindings, "q"); n != 0 {
			t.Errorf("%d bindings by one that ends", n)
		}
	})
}

// The pod's fate, seen on the watch, ends the sending at once.
func TestSendingEndsByTheWatch(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(c *cluster)
		told    bool // that it is on its node
		room    bool // for the next pod
	}{
		"seen on its node": {func(c *cluster) { _ = c.bind("p", "n1") }, true, false},
		"seen on another":  {func(c *cluster) { _ = c.bind("p", "n2") }, false, true},
		"deleted":          {func(c *cluster) { c.delete("p") }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
				serverAway(c, 0)
				c.create(fixture.Pod("p", fixture.Requests("cpu", "4")))
				time.Sleep(10 * time.Second)
				sent := c.times(c.bindings, "p")
				if sent < 2 {
					t.Fatalf("sent %d times in ten seconds, want it sent again", sent)
				}
				test.happens(c)
				synctest.Wait()
				if told := strings.Contains(c.said(), "p → n1"); told != test.told {
					t.Errorf("told of its node: %v, want %v", told, test.told)
				}
				c.create(fixture.Pod("q", fixture.Requests("cpu", "4")))
				time.Sleep(time.Minute)
				if n := c.times(c.bindings, "p"); n != sent {
					t.Errorf("sent %d times more after its end was seen", n-sent)
				}
				if room := c.times(c.bindings, "q") > 0; room != test.room {
					t.Errorf("there was room for the next: %v, want %v", room, test.room)
				}
				if n := s.queue.Pending()["active"]; n != 0 {
					t.Errorf("%d pods wait for an attempt", n)
				}
			})
		})
	}
}

// While the server is unavailable, requests for the waiting Bindings are
// limited; when it is back, all pods get bound.
func TestManyPodsWhileTheServerIsAway(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1", fixture.Allocatable("pods", "1000", "cpu", "1000"))}, func(t *testing.T, c *cluster, _ *running) {
		back := serverAway(c, 0)
		for i := range 500 {
			c.create(fixture.Pod(fmt.Sprint("p", i)))
		}
		const minutes = 10
		time.Sleep(minutes * time.Minute)
		sent := 0
		for i := range 500 {
			sent += c.times(c.bindings, fmt.Sprint("p", i))
		}
		// Each at most once in five seconds, after the first ones.
		if most := maxBindings * (minutes*60/5 + 10); sent > most {
			t.Errorf("%d bindings sent in %d minutes, want %d at most", sent, minutes, most)
		}
		back()
		time.Sleep(10 * time.Second)
		for i := range 500 {
			if name := fmt.Sprint("p", i); c.nodeOf(name) != "n1" {
				t.Errorf("%s has no node", name)
			}
		}
	})
}

// A scheduler that is to stop does not wait for a server that is away.
func TestEndsWhileTheServerIsAway(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
		serverAway(c, 0)
		for i := range maxBindings + 5 {
			c.create(fixture.Pod(fmt.Sprint("p", i)))
		}
		time.Sleep(time.Minute)
		began := time.Now()
		s.stop()
		if took := time.Since(began); took != 0 {
			t.Errorf("took %s to stop", took)
		}
		if _, _, assumed := s.cache.Sizes(); assumed != 0 {
			t.Errorf("%d pods are assumed after the end", assumed)
		}
	})
}

// An error is an answer: if the server can't bind one pod, others are bound
// meanwhile, and an event says so.
func TestAServerThatFailsToBind(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, _ *running) {
		c.fault = func(pod string, _ int) *fault {
			if strings.HasPrefix(pod, "broken") {
				return &fault{err: apierrors.NewInternalError(errors.New("failed calling webhook"))}
			}
			return nil
		}
		for i := range 2 * maxBindings {
			c.create(fixture.Pod(fmt.Sprint("broken-", i)))
		}
		time.Sleep(30 * time.Second)
		c.create(fixture.Pod("good"))
		time.Sleep(30 * time.Second)
		if c.nodeOf("good") != "n1" {
			t.Error("the pod that can be bound has no node")
		}
		if want := `broken-0: running Bind plugin "Cluster": Internal error occurred: failed calling webhook`; !strings.Contains(c.said(), want) {
			t.Errorf("nobody said %q", want)
		}
	})
}

// No more Bindings are sent to a node that is gone.
func TestNodeGoneWhileAnAnswerIsAwaited(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, _ *running) {
		back := serverAway(c, 0)
		c.create(fixture.Pod("p"))
		time.Sleep(time.Minute)
		c.nodes.Apply(watch.Deleted, fixture.Node("n1"))
		time.Sleep(time.Minute)
		sent := c.times(c.bindings, "p")
		c.nodes.Apply(watch.Added, fixture.Node("n2"))
		time.Sleep(time.Minute)
		if n := c.times(c.bindings, "p"); n != sent {
			t.Errorf("sent %d times more to a node that is gone", n-sent)
		}
		back()
		time.Sleep(time.Minute)
		if c.nodeOf("p") != "n2" {
			t.Errorf("p is on %q", c.nodeOf("p"))
		}
	})
}

// An update of the pod from before its Binding, such as the condition that said
// why it had no node, arrives after the queue is done with the pod.
func TestAnAssumedPodIsNotPlacedAgain(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1")}, func(t *testing.T, c *cluster, s *running) {
		c.lag = time.Minute
		c.create(resident("low", "n1", "2", 0, 1))
		pod := fixture.Pod("p", fixture.Requests("cpu", "2"), fixture.Priority(100))
		c.create(pod)
		synctest.Wait()
		late := pod.DeepCopy()
		late.Labels = map[string]string{"set": "before it was bound"}
		c.sink.Apply(watch.Modified, late)
		synctest.Wait()
		if said := c.said(); said != "p → n1" {
			t.Errorf("the log is\n%s\nwant only that the pod was bound", said)
		}
		if part, _ := s.queue.Where(pod.UID); part != "" {
			t.Errorf("the pod waits in the queue: %s", part)
		}
	})
}
