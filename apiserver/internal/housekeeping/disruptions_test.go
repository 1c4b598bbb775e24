package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// TestHowManyMayGo computes budgets for pods without owners.
func TestHowManyMayGo(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	pod := func(name string, isReady bool) *core.Pod {
		p := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if isReady {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return p
	}
	ending := pod("ending", true)
	ending.DeletionTimestamp = &metav1.Time{Time: now}
	var pods []budgetPod
	for _, p := range []*core.Pod{pod("a", true), pod("b", true), pod("c", true), pod("sick", false), ending} {
		pods = append(pods, budgetPodOf(p))
	}
	l := &disruptions{Dependencies: &Dependencies{}, clock: testingclock.NewFakeClock(now)}
	for name, c := range map[string]struct {
		least, most                         *intstr.IntOrString
		evicted                             map[string]time.Duration // and how long ago
		pods                                []budgetPod
		healthy, desired, expected, allowed int32
		again                               time.Duration
	}{
		"at least two":  {least: new(intstr.FromInt32(2)), pods: pods, healthy: 3, desired: 2, expected: 5, allowed: 1},
		"at least four": {least: new(intstr.FromInt32(4)), pods: pods, healthy: 3, desired: 4, expected: 5},
		"at least half": {least: new(intstr.FromString("50%")), pods: pods, healthy: 3},
		"at most three": {most: new(intstr.FromInt32(3)), pods: pods, healthy: 3},
		"at most nine":  {most: new(intstr.FromInt32(9)), pods: pods, healthy: 3},
		"at most half":  {most: new(intstr.FromString("50%")), pods: pods, healthy: 3},
		"neither":       {pods: pods, healthy: 3},
		"no pods":       {least: new(intstr.FromInt32(0))},
		"one is about to go": {
			least: new(intstr.FromInt32(2)), pods: pods, evicted: map[string]time.Duration{"a": time.Minute, "gone": 0, "ending": 0}, healthy: 2, desired: 2,
			expected: 5, again: time.Minute,
		},
		"one never began to go": {
			least: new(intstr.FromInt32(2)), pods: pods, evicted: map[string]time.Duration{"a": disruptedPodTimeout}, healthy: 3, desired: 2, expected: 5,
			allowed: 1,
		},
	} {
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Generation: 7}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: c.least, MaxUnavailable: c.most},
		}
		b.Status.DisruptedPods = map[string]metav1.Time{}
		for pod, ago := range c.evicted {
			b.Status.DisruptedPods[pod] = metav1.NewTime(now.Add(-ago))
		}
		again := l.updateBudget(t.Context(), b, c.pods)
		s := b.Status
		if s.CurrentHealthy != c.healthy || s.DesiredHealthy != c.desired || s.ExpectedPods != c.expected || s.DisruptionsAllowed != c.allowed ||
			s.ObservedGeneration != 7 {
			t.Errorf("%s: %+v", name, s)
		}
		want := resyncPeriod
		if c.again > 0 {
			want = c.again
		}
		if again != want {
			t.Errorf("%s: again after %s, want %s", name, again, want)
		}
		if allowed := s.Conditions[0].Status == metav1.ConditionTrue; allowed != (c.allowed > 0) {
			t.Errorf("%s: %+v", name, s.Conditions)
		}
		if c.again == 0 && s.DisruptedPods != nil || c.again > 0 && len(s.DisruptedPods) != 1 {
			t.Errorf("%s: %v", name, s.DisruptedPods)
		}
	}
}

// Who else writes the status has other words for the same.
func TestWordsOfOthersStay(t *testing.T) {
	s := policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 3, CurrentHealthy: 4, ObservedGeneration: 2}
	setFailed(&s, errors.New("first"), time.Now())
	first := *s.DeepCopy()
	if c := first.Conditions[0]; c.Message != "first" || c.Status != metav1.ConditionFalse || first.DisruptionsAllowed != 0 || first.CurrentHealthy != 4 ||
		first.ObservedGeneration != 2 {
		t.Errorf("%+v", first)
	}
	if setFailed(&s, errors.New("second"), time.Now().Add(time.Hour)); !reflect.DeepEqual(s, first) {
		t.Errorf("%+v became %+v", first, s)
	}
}

// decoding counts the objects that are decoded.
type decoding struct {
	*registrytest.Store
	count atomic.Int32
}

func (d *decoding) Decode(e registry.Encoded) (core.Object, error) {
	d.count.Add(1)
	return d.Store.Decode(e)
}

// TestBudgetsOfManyPods: a change of one pod decodes that pod, and no others.
func TestBudgetsOfManyPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := func(name string, ready corev1.ConditionStatus) *core.Pod {
			p := pod(name, "n1")
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
			return p
		}
		pods, budgets := &decoding{Store: registrytest.New(core.Pods)}, registrytest.New(core.PodDisruptionBudgets)
		for i := range 100 {
			pods.Put(report(fmt.Sprint("p", i), corev1.ConditionTrue))
		}
		budgets.Put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, MinAvailable: new(intstr.FromInt32(10))}})
		start(t, newDisruptions, registrytest.New(core.Pods), pods, budgets)
		pass(time.Second)
		expect := func(healthy int32, most int32) {
			t.Helper()
			if s := budgets.Peek("shop", "b").(*policyv1.PodDisruptionBudget).Status; s.CurrentHealthy != healthy || s.ExpectedPods != 100 {
				t.Errorf("healthy: %d of %d, want %d", s.CurrentHealthy, s.ExpectedPods, healthy)
			}
			if n := pods.count.Swap(0); n > most {
				t.Errorf("%d pods were decoded", n)
			}
		}
		expect(100, 101)
		pods.Put(report("p7", corev1.ConditionFalse))
		pass(time.Second)
		expect(99, 2) // of the event, and of the pod
	})
}

// goingBack is a store that can go back to a backup: one revision is given out twice.
type goingBack struct {
	*registrytest.Store
	back  atomic.Bool
	watch atomic.Pointer[context.CancelFunc]
}

func (g *goingBack) List(ctx context.Context, namespace string, o registry.ListOptions) (registry.List, error) {
	list, err := g.Store.List(ctx, namespace, o)
	for i := range list.Items {
		if g.back.Load() {
			list.Items[i].Revision--
		}
	}
	return list, err
}

func (g *goingBack) Watch(ctx context.Context, namespace string, o registry.ListOptions) (registry.Watcher, error) {
	ctx, cancel := context.WithCancel(ctx)
	g.watch.Store(&cancel)
	return g.Store.Watch(ctx, namespace, o)
}

// TestBudgetsAfterABackup: of a pod that has an old revision again, the present state counts.
func TestBudgetsAfterABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pod("p", "n1")
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pods, budgets := &goingBack{Store: registrytest.New(core.Pods, p)}, registrytest.New(core.PodDisruptionBudgets)
		budgets.Put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, MinAvailable: new(intstr.FromInt32(1))}})
		start(t, newDisruptions, registrytest.New(core.Pods), pods, budgets)
		pass(time.Second)
		healthy := func() int32 { return budgets.Peek("shop", "b").(*policyv1.PodDisruptionBudget).Status.CurrentHealthy }
		if n := healthy(); n != 1 {
			t.Fatalf("healthy: %d", n)
		}
		pods.back.Store(true)
		pods.Put(pod("p", "n1"))
		pass(time.Second)
		(*pods.watch.Load())() // its end is the only sign of that
		pass(time.Second)
		if n := healthy(); n != 0 {
			t.Errorf("healthy: %d", n)
		}
	})
}
