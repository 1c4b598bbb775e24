package housekeeping

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

const nodeGrace = 40 * time.Second

// house runs loops on stores in memory, in a synctest bubble.
type house struct {
	nodes, leases, pods, events *registrytest.Store
}

func run(t *testing.T, make func(*Dependencies) (Loop, error), objects ...core.Object) *house {
	t.Helper()
	h := &house{
		nodes: registrytest.New(core.Nodes), leases: registrytest.New(core.Leases), pods: registrytest.New(core.Pods),
		events: registrytest.New(core.Events),
	}
	for _, obj := range objects {
		switch obj.(type) {
		case *core.Node:
			h.nodes.Put(obj)
		case *core.Lease:
			h.leases.Put(obj)
		case *core.Pod:
			h.pods.Put(obj)
		}
	}
	start(t, make, h.pods, h.nodes, h.leases, h.events)
	return h
}

// start runs a loop over these stores, and waits until it has nothing to do.
func start(t *testing.T, make func(*Dependencies) (Loop, error), pods *registrytest.Store, others ...registry.Resource) {
	t.Helper()
	d := &Dependencies{
		Resources: append(others, pods),
		Pods:      informer.New(pods, informer.PodOf, informer.Options[informer.Pod]{Index: informer.PodNode}, clock.RealClock{}, zap.NewNop()),
		Clock:     clock.RealClock{}, Logger: zap.NewNop(), NodeGrace: nodeGrace,
	}
	loop, err := make(d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := runAllOf(ctx, loop, d.Pods.Run)
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
}

func runAllOf(ctx context.Context, loops ...func(context.Context) error) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); _ = runAll(ctx, loops) }()
	return done
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func node(name string, ready corev1.ConditionStatus) *core.Node {
	return &core.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node-" + "1"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Now()},
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		}},
	}
}

func pod(name, node string) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "pod-1"}, Spec: core.PodSpec{NodeName: node}}
}

func (h *house) ready(t *testing.T, name string) (ready corev1.NodeCondition, taints []string) {
	t.Helper()
	n := h.nodes.Peek("", name).(*core.Node)
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready = c
		}
	}
	for _, taint := range n.Spec.Taints {
		taints = append(taints, taint.Key+":"+string(taint.Effect))
	}
	return ready, taints
}

func lease(name string, renewed time.Time) *core.Lease {
	at := metav1.NewMicroTime(renewed)
	l := &core.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: core.NamespaceNodeLease, Name: name}}
	l.Spec.RenewTime = &at
	return l
}

func TestSilentNodeIsLostAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pod("web", "n1")
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		h := run(t, newNodeLifecycle, node("n1", corev1.ConditionTrue), lease("n1", time.Now()), node("n2", corev1.ConditionTrue), lease("n2", time.Now()), p)
		for range 3 { // only its lease keeps it alive
			pass(nodeGrace - time.Second)
			h.leases.Put(lease("n1", time.Now()))
			h.leases.Put(lease("n2", time.Now()))
		}
		synctest.Wait()
		if ready, taints := h.ready(t, "n1"); ready.Status != corev1.ConditionTrue || len(taints) > 0 {
			t.Fatalf("a living node: %+v %v", ready, taints)
		}
		pass(nodeGrace - time.Second)
		h.leases.Put(lease("n2", time.Now()))
		pass(2*time.Second + outageDelay)
		ready, taints := h.ready(t, "n1")
		if ready.Status != corev1.ConditionUnknown || ready.Reason != "NodeStatusUnknown" {
			t.Errorf("a silent node: %+v", ready)
		}
		if !slices.Equal(taints, []string{"node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"}) {
			t.Errorf("taints %v", taints)
		}
		if c := h.pods.Peek("shop", "web").(*core.Pod).Status.Conditions[0]; c.Status != corev1.ConditionFalse {
			t.Errorf("its pod is still ready: %+v", c)
		}
		back := h.nodes.Peek("", "n1").(*core.Node)
		back.Status = node("n1", corev1.ConditionTrue).Status
		h.nodes.Put(back)
		synctest.Wait()
		if ready, taints := h.ready(t, "n1"); ready.Status != corev1.ConditionTrue || len(taints) > 0 {
			t.Errorf("a node that is back: %+v %v", ready, taints)
		}
	})
}

func TestNodeThatNeverReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := run(t, newNodeLifecycle, &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		pass(nodeStartupGrace - time.Second)
		if _, taints := h.ready(t, "n1"); len(taints) > 0 {
			t.Errorf("tainted before its time: %v", taints)
		}
		pass(2 * time.Second)
		if ready, _ := h.ready(t, "n1"); ready.Status != corev1.ConditionUnknown || ready.Reason != "NodeStatusNeverUpdated" {
			t.Errorf("%+v", ready)
		}
	})
}

func TestTaintsOfOthersStay(t *testing.T) {
	now := metav1.Now()
	have := []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoExecute}, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	facts := nodeState{unschedulable: true, conditions: map[corev1.NodeConditionType]corev1.ConditionStatus{corev1.NodeDiskPressure: corev1.ConditionTrue}}
	var got []string
	for _, taint := range mergeTaints(have, wantedTaints(facts, corev1.ConditionTrue, false), now) {
		got = append(got, taint.Key)
	}
	if !slices.Equal(got, []string{"mine", corev1.TaintNodeDiskPressure, corev1.TaintNodeUnschedulable}) {
		t.Errorf("got %v", got)
	}
}

func TestCollectedRulesAreInOrderAndOnce(t *testing.T) {
	role := func(name string, labels map[string]string, resources ...string) *rbacv1.ClusterRole {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		for _, resource := range resources {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{resource}})
		}
		return r
	}
	in := map[string]string{"in": "true"}
	all := role("all", in, "self")
	all.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: in}}}
	rules, err := aggregatedRules(all, []*rbacv1.ClusterRole{role("b", in, "y", "x"), all, role("out", nil, "z"), role("a", in, "x")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rules {
		got = append(got, r.Resources...)
	}
	if !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("got %v", got)
	}
}

func TestWorkerTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Duration
		begun := time.Now()
		w := newWorker("test", &Dependencies{Clock: clock.RealClock{}, Logger: zap.NewNop()}, 1, func(context.Context, informer.Key) (time.Duration, error) {
			calls = append(calls, time.Since(begun))
			switch len(calls) {
			case 1, 2:
				return 0, context.DeadlineExceeded
			case 3:
				return time.Hour, nil
			}
			return 0, nil
		})
		key := informer.Key{Name: "x"}
		w.add(key)
		w.add(key)
		ctx, cancel := context.WithCancel(t.Context())
		done := runAllOf(ctx, w.run)
		pass(2 * time.Hour)
		cancel()
		<-done
		if len(calls) != 4 || calls[0] != 0 || calls[1] < retryPolicy.Initial || calls[3]-calls[2] != time.Hour || len(w.due) != 0 {
			t.Errorf("called at %v", calls)
		}
	})
}

// TestWorkerWorksOnSeveral: an object that takes long keeps no others waiting, and is never worked
// on twice at a time.
func TestWorkerWorksOnSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var calls []string
		begun := time.Now()
		w := newWorker("test", &Dependencies{Clock: clock.RealClock{}, Logger: zap.NewNop()}, 2, func(_ context.Context, key informer.Key) (time.Duration, error) {
			mu.Lock()
			calls = append(calls, fmt.Sprintf("%s at %s", key.Name, time.Since(begun)))
			mu.Unlock()
			if key.Name == "slow" {
				<-time.After(time.Hour)
			}
			return 0, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := runAllOf(ctx, w.run)
		for _, name := range []string{"slow", "slow", "quick", "quick"} {
			w.add(informer.Key{Name: name})
			pass(time.Minute)
		}
		pass(3 * time.Hour)
		cancel()
		<-done
		want := []string{"slow at 0s", "quick at 2m0s", "quick at 3m0s", "slow at 1h0m0s"}
		if !slices.Equal(calls, want) || len(w.taken)+len(w.due) != 0 {
			t.Errorf("got %q, want %q", calls, want)
		}
	})
}

// A node whose clock is a day off lives as long as what it writes changes, and
// is lost as soon as any other when it stops.
func TestClocksThatDiffer(t *testing.T) {
	for _, skew := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			there := func() time.Time { return time.Now().Add(skew) }
			n := node("n1", corev1.ConditionTrue)
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(there())
			h := run(t, newNodeLifecycle, n, lease("n1", there()))
			for range 5 {
				pass(nodeGrace - time.Second)
				h.leases.Put(lease("n1", there()))
				synctest.Wait()
				if ready, taints := h.ready(t, "n1"); ready.Status != corev1.ConditionTrue || len(taints) > 0 {
					t.Fatalf("%s: a living node: %+v %v", skew, ready, taints)
				}
			}
			pass(nodeGrace + time.Second)
			if ready, taints := h.ready(t, "n1"); ready.Status != corev1.ConditionUnknown || len(taints) != 1 {
				t.Errorf("%s: a silent node: %+v %v", skew, ready, taints)
			}
		})
	}
}
