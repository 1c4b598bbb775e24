package cycle

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/watch"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/waitingpods"
)

// cluster plays the API server's part in scheduling, for faults that a real one
// does not make on demand. It is the Bind plugin, the watch and the store.
type cluster struct {
	mu    sync.Mutex
	pods  map[string]*core.Pod
	sink  watch.Sink[*core.Pod]
	nodes watch.Sink[*core.Node]

	// fault decides about a pod's n-th binding; nil carries it out.
	fault       func(pod string, n int) *fault
	bindings    map[string]int
	bound       map[string]int // how often each was really bound
	stamps      []relay.Stamp  // those that came with bindings
	events      []string
	lag         time.Duration // of the watch, for bindings and nominations
	away        bool          // pods can't be read
	stopped     atomic.Bool   // the scheduler was stopped, and may no longer lead
	lingering   bool          // victims of preemption do not end
	extenders   *extender.Chain
	budgets     []*policyv1.PodDisruptionBudget
	nominator   *nominator.Nominator
	waitingPods *waitingpods.Map // of pods that are preempted before they are bound
}

// fault is what goes wrong with a binding.
type fault struct {
	err     error
	carried bool          // it was carried out, only the answer was lost
	hang    bool          // no answer comes at all
	late    time.Duration // after which it is carried out, whatever was answered
}

func (c *cluster) Name() string { return "Cluster" }

func (c *cluster) Bind(ctx context.Context, state *framework.CycleState, pod *framework.PodInfo, node string) *framework.Status {
	name := pod.Pod.Name
	c.mu.Lock()
	c.bindings[name]++
	c.stamps = append(c.stamps, state.Stamps.Unsent()...)
	n := c.bindings[name]
	var f *fault
	if c.fault != nil {
		f = c.fault(name, n)
	}
	c.mu.Unlock()
	if f == nil || f.carried {
		if err := c.bind(name, node); err != nil {
			return framework.AsError(err)
		}
	}
	switch {
	case f == nil:
		return nil
	case f.late > 0:
		time.AfterFunc(f.late, func() { _ = c.bind(name, node) })
	case f.hang:
		<-ctx.Done()
		return framework.AsError(ctx.Err())
	}
	return framework.AsError(f.err)
}

// bind carries out a binding, as the API does.
func (c *cluster) bind(name, node string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored, known := c.pods[name]
	if !known {
		return apierrors.NewNotFound(core.Pods.GVR().GroupResource(), name)
	}
	if stored.Spec.NodeName != "" {
		return apierrors.NewConflict(core.Pods.GVR().GroupResource(), name, errors.New("already assigned"))
	}
	bound := stored.DeepCopy()
	bound.Spec.NodeName = node
	c.pods[name] = bound
	c.bound[name]++
	c.show(bound)
	return nil
}

// show has the watch bring a changed pod. c.mu is held.
func (c *cluster) show(pod *core.Pod) {
	if c.lag == 0 {
		c.sink.Apply(watch.Modified, pod.DeepCopy())
		return
	}
	time.AfterFunc(c.lag, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if now, there := c.pods[pod.Name]; there { // late, but not after its end
			c.sink.Apply(watch.Modified, now.DeepCopy())
		}
	})
}

func (c *cluster) Pod(_ context.Context, _, name string) (*core.Pod, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, io.EOF
	}
	if pod, known := c.pods[name]; known {
		return pod.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(core.Pods.GVR().GroupResource(), name)
}

func (c *cluster) create(pod *core.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods[pod.Name] = pod
	c.sink.Apply(watch.Added, pod.DeepCopy())
}

func (c *cluster) delete(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pod, known := c.pods[name]
	if !known {
		return // somebody was faster
	}
	delete(c.pods, name)
	c.sink.Apply(watch.Deleted, pod.DeepCopy())
}

func (c *cluster) Scheduled(pod *core.Pod, node string) { c.event(pod.Name + " → " + node) }

// Unscheduled records the error, and sets the pod's nominated node.
func (c *cluster) Unscheduled(pod *core.Pod, err error, nominated string) {
	c.event(pod.Name + ": " + err.Error())
	c.Nominated(pod, nominated)
}

// Nominated writes, as the real Reporter, only what is new to the pod that it is given.
func (c *cluster) Nominated(pod *core.Pod, nominated string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := c.pods[pod.Name]
	if stored == nil || pod.Status.NominatedNodeName == nominated {
		return
	}
	stored = stored.DeepCopy()
	stored.Status.NominatedNodeName = nominated
	c.pods[pod.Name] = stored
	c.show(stored)
}

// Evict implements defaultpreemption.Executor: the victims end within their
// grace period.
func (c *cluster) Evict(preemptor *core.Pod, victims []*core.Pod, node string) {
	for _, victim := range victims {
		if c.waitingPods.Preempt(victim.UID, "DefaultPreemption") {
			c.nominator.Left(victim.UID)
			continue
		}
		c.event(victim.Name + " leaves " + node + " for " + preemptor.Name)
		time.AfterFunc(time.Second, func() { c.leave(victim.Name) })
	}
}

func (c *cluster) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pods[name] == nil {
		return
	}
	leaving := c.pods[name].DeepCopy()
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	leaving.Status.Conditions = []core.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	c.pods[name] = leaving
	c.sink.Apply(watch.Modified, leaving.DeepCopy())
	if !c.lingering {
		time.AfterFunc(10*time.Second, func() { c.delete(name) })
	}
}

func (c *cluster) event(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, text)
}

func (c *cluster) nodeOf(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pods[name] == nil {
		return "" // it was evicted
	}
	return c.pods[name].Spec.NodeName
}

func (c *cluster) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[name] != nil
}

func (c *cluster) stored() map[string]*core.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.pods)
}

func (c *cluster) times(counts map[string]int, name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return counts[name]
}

func (c *cluster) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.events)
}

func (c *cluster) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.events, "\n")
}
