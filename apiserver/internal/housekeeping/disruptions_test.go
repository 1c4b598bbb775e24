package housekeeping

import (
	"errors"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	testingclock "k8s.io/utils/clock/testing"

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
	pods := []*core.Pod{pod("a", true), pod("b", true), pod("c", true), pod("sick", false), ending}
	l := &disruptions{Dependencies: &Dependencies{}, clock: testingclock.NewFakeClock(now)}
	for name, c := range map[string]struct {
		least, most                         *intstr.IntOrString
		evicted                             map[string]time.Duration // and how long ago
		pods                                []*core.Pod
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
