package cycle

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kctl/proto/core"
	"kctl/proto/eventually"
	"kctl/proto/watch"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/fixture"
)

// device is an extender: it allows no pod on n1, prefers n3, allows evictions
// only on n3, and binds pods called its-….
func device(c *cluster) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch r.URL.Path {
		case "/filter":
			var args extenderv1.ExtenderArgs
			_ = json.NewDecoder(r.Body).Decode(&args)
			kept := []string{}
			for _, name := range *args.NodeNames {
				if name != "n1" {
					kept = append(kept, name)
				}
			}
			answer = extenderv1.ExtenderFilterResult{NodeNames: &kept, FailedNodes: extenderv1.FailedNodesMap{"n1": "no free device"}}
		case "/rank":
			answer = extenderv1.HostPriorityList{{Host: "n3", Score: 10}}
		case "/preempt":
			var args extenderv1.ExtenderPreemptionArgs
			_ = json.NewDecoder(r.Body).Decode(&args)
			answer = extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"n3": args.NodeNameToMetaVictims["n3"]}}
		case "/bind":
			var args extenderv1.ExtenderBindingArgs
			_ = json.NewDecoder(r.Body).Decode(&args)
			result := extenderv1.ExtenderBindingResult{}
			c.event("the extender binds " + args.PodName)
			if err := c.bind(args.PodName, args.Node); err != nil {
				result.Error = err.Error()
			}
			answer = result
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// TestExtender runs in real time, because it really calls over HTTP.
func TestExtender(t *testing.T) {
	c := &cluster{pods: map[string]*core.Pod{}, bindings: map[string]int{}, bound: map[string]int{}}
	server := httptest.NewServer(device(c))
	defer server.Close()
	var err error
	c.extenders, err = extender.NewChain([]configv1.Extender{{
		URLPrefix: server.URL, FilterVerb: "filter", PrioritizeVerb: "rank", Weight: 100, PreemptVerb: "preempt", BindVerb: "bind", NodeCacheCapable: true,
	}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	s := startScheduler(t, c)
	defer s.stop()
	for _, name := range []string{"n1", "n2", "n3"} {
		c.nodes.Apply(watch.Added, fixture.Node(name))
	}
	c.create(whole("a"))
	eventually.Holds(t, "a is on the node that the extender likes", func() bool { return c.nodeOf("a") == "n3" })
	eventually.Holds(t, "the extender binds a", func() bool { return strings.Contains(c.said(), "the extender binds a") })
	c.create(whole("b"))
	eventually.Holds(t, "b is on the node that is left", func() bool { return c.nodeOf("b") == "n2" })
	c.create(whole("c"))
	const words = "c: 0/3 nodes are available: 1 no free device, 2 Insufficient cpu."
	eventually.Holds(t, "somebody says "+words, func() bool { return strings.Contains(c.said(), words) })
	c.create(fixture.Pod("important", fixture.Requests("cpu", "4"), fixture.Priority(10)))
	eventually.Holds(t, "somebody leaves where the extender lets them", func() bool { return strings.Contains(c.said(), "a leaves n3 for important") })
	if strings.Contains(c.said(), "b leaves") {
		t.Errorf("a pod left n2, against the extender:\n%s", c.said())
	}
}

// A pod that no node takes is said to be unschedulable, for whom autoscalers make room,
// also if extenders fail or leave nobody to evict.
func TestExtendersThatLeaveNoCandidate(t *testing.T) {
	for words, answer := range map[string]http.HandlerFunc{
		"preemption: no candidate node for preemption": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) },
		"answered 500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	} {
		c := &cluster{pods: map[string]*core.Pod{}, bindings: map[string]int{}, bound: map[string]int{}}
		server := httptest.NewServer(answer)
		defer server.Close()
		var err error
		if c.extenders, err = extender.NewChain([]configv1.Extender{{URLPrefix: server.URL, PreemptVerb: "preempt", NodeCacheCapable: true}},
			zap.NewNop()); err != nil {
			t.Fatal(err)
		}
		s := startScheduler(t, c)
		defer s.stop()
		c.nodes.Apply(watch.Added, fixture.Node("n1"))
		c.create(whole("a"))
		eventually.Holds(t, "a has a node", func() bool { return c.nodeOf("a") == "n1" })
		c.create(fixture.Pod("important", fixture.Requests("cpu", "4"), fixture.Priority(10)))
		eventually.Holds(t, "somebody says "+words, func() bool {
			for line := range strings.Lines(c.said()) {
				if strings.Contains(line, "important: 0/1 nodes are available: 1 Insufficient cpu. preemption: ") && strings.Contains(line, words) {
					return true
				}
			}
			return false
		})
	}
}

// An extender that does not answer keeps those of its own pods waiting, and no others.
func TestAnExtenderThatHangs(t *testing.T) {
	const theirs = corev1.ResourceName("example.com/device")
	c := &cluster{pods: map[string]*core.Pod{}, bindings: map[string]int{}, bound: map[string]int{}}
	var asked, givenUp atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the request is not seen
		asked.Add(1)
		<-r.Context().Done()
		givenUp.Add(1)
	}))
	defer server.Close()
	var err error
	c.extenders, err = extender.NewChain([]configv1.Extender{{
		URLPrefix: server.URL, BindVerb: "bind", NodeCacheCapable: true, HTTPTimeout: metav1.Duration{Duration: time.Hour},
		ManagedResources: []configv1.ExtenderManagedResource{{Name: string(theirs)}},
	}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	s := startScheduler(t, c)
	defer s.stop()
	defer server.CloseClientConnections() // the end need not wait for bindGrace
	const held = maxBindings + 1
	c.nodes.Apply(watch.Added, fixture.Node("n1", fixture.Allocatable(string(theirs), fmt.Sprint(held), "pods", "200", "cpu", "1")))
	for i := range held {
		c.create(fixture.Pod(fmt.Sprint("theirs-", i), fixture.Requests(string(theirs), "1")))
	}
	eventually.Holds(t, "the extender is asked for all of its pods", func() bool { return asked.Load() == held })
	c.create(fixture.Pod("ours", fixture.Requests("cpu", "1")))
	eventually.Holds(t, "another pod is bound", func() bool { return c.nodeOf("ours") == "n1" })
	if n := givenUp.Load(); n > 0 {
		t.Errorf("%d of the extender's pods had to be given up before", n)
	}
}

// What an extender leaves to the server waits for a slot like any other Binding.
func TestAnExtenderThatIsPassedOver(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{pods: map[string]*core.Pod{}, bindings: map[string]int{}, bound: map[string]int{}}
		var err error
		c.extenders, err = extender.NewChain([]configv1.Extender{{URLPrefix: gone.URL, BindVerb: "bind", Ignorable: true}}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		s := startScheduler(t, c)
		back := serverAway(c, 0)
		c.nodes.Apply(watch.Added, fixture.Node("n1", fixture.Allocatable("pods", "200", "cpu", "1")))
		const pods = maxBindings + 20
		for i := range pods {
			c.create(fixture.Pod(fmt.Sprint("p", i)))
		}
		time.Sleep(time.Minute)
		c.mu.Lock()
		sent := len(c.bindings)
		c.mu.Unlock()
		if sent != maxBindings {
			t.Errorf("the server was asked for %d Bindings at a time, want %d", sent, maxBindings)
		}
		back()
		time.Sleep(10 * time.Second)
		for i := range pods {
			if name := fmt.Sprint("p", i); c.nodeOf(name) != "n1" {
				t.Errorf("%s has no node", name)
			}
		}
		serverAway(c, 0)
		for i := range pods {
			c.create(fixture.Pod(fmt.Sprint("late-", i)))
		}
		time.Sleep(time.Minute)
		began := time.Now()
		if s.stop(); time.Since(began) != 0 {
			t.Errorf("took %s to stop", time.Since(began))
		}
	})
}

// If an extender fails when it is asked about the nominated node alone, the pod gets another.
func TestAnExtenderFailsForTheNominatedNode(t *testing.T) {
	c := &cluster{pods: map[string]*core.Pod{}, bindings: map[string]int{}, bound: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		_ = json.NewDecoder(r.Body).Decode(&args)
		if len(*args.NodeNames) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: &[]string{"n2"}})
	}))
	defer server.Close()
	var err error
	c.extenders, err = extender.NewChain([]configv1.Extender{{URLPrefix: server.URL, FilterVerb: "filter", NodeCacheCapable: true}}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	s := startScheduler(t, c)
	defer s.stop()
	for _, name := range []string{"n1", "n2"} {
		c.nodes.Apply(watch.Added, fixture.Node(name))
	}
	pod := fixture.Pod("a")
	pod.Status.NominatedNodeName = "n1"
	c.create(pod)
	eventually.Holds(t, "a has the other node", func() bool { return c.nodeOf("a") == "n2" })
}
