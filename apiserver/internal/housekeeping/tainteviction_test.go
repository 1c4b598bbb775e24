package housekeeping

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/informer"
)

func TestTolerated(t *testing.T) {
	now := time.Now()
	since := metav1.NewTime(now.Add(-10 * time.Second))
	taint := corev1.Taint{Key: "fire", Value: "big", Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}
	seconds := func(n int64) *int64 { return &n }
	exists := func(for_ *int64) corev1.Toleration {
		return corev1.Toleration{Key: "fire", Operator: corev1.TolerationOpExists, TolerationSeconds: for_}
	}
	tests := map[string]struct {
		tolerations []corev1.Toleration
		left        time.Duration
		stays       bool
	}{
		"none":              {nil, 0, false},
		"for ever":          {[]corev1.Toleration{exists(nil)}, 0, true},
		"everything":        {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, 0, true},
		"the value":         {[]corev1.Toleration{{Key: "fire", Value: "big"}}, 0, true},
		"another value":     {[]corev1.Toleration{{Key: "fire", Value: "small"}}, 0, false},
		"another effect":    {[]corev1.Toleration{{Key: "fire", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}, 0, false},
		"for a while":       {[]corev1.Toleration{exists(seconds(15))}, 5 * time.Second, false},
		"the first":         {[]corev1.Toleration{exists(seconds(30)), exists(seconds(15)), exists(nil)}, 20 * time.Second, false},
		"first for ever":    {[]corev1.Toleration{exists(nil), exists(seconds(15))}, 0, true},
		"a number for ever": {[]corev1.Toleration{exists(seconds(math.MaxInt64 / 2))}, 100*365*24*time.Hour - 10*time.Second, false},
		"no longer":         {[]corev1.Toleration{exists(seconds(5))}, -5 * time.Second, false},
		"for no time, ever": {[]corev1.Toleration{exists(seconds(-1))}, -10 * time.Second, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := informer.Pod{Tolerations: test.tolerations}
			if left, stays := tolerated([]corev1.Taint{taint}, pod, now); left != test.left || stays != test.stays {
				t.Errorf("%v %v, want %v %v", left, stays, test.left, test.stays)
			}
		})
	}

	for bound, want := range map[time.Duration]time.Duration{-time.Minute: 5 * time.Second, -3 * time.Second: 12 * time.Second, time.Hour: 5 * time.Second} {
		pod := informer.Pod{Tolerations: []corev1.Toleration{exists(seconds(15))}, Bound: now.Add(bound)}
		if left, stays := tolerated([]corev1.Taint{taint}, pod, now); left != want || stays {
			t.Errorf("bound at %v: %v %v, want %v", bound, left, stays, want)
		}
	}
}

// leavesBetween checks that the pod web is there after a time, and gone some more time after that.
func leavesBetween(t *testing.T, h *house, there, more time.Duration) {
	t.Helper()
	pass(there)
	if h.pods.Peek("shop", "web") == nil {
		t.Fatal("gone before its time")
	}
	pass(more)
	if h.pods.Peek("shop", "web") != nil {
		t.Error("still there")
	}
}

func TestPodLeavesWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since, bears := metav1.Now(), int64(300)
		n := node("n1", corev1.ConditionUnknown)
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}}
		p := pod("web", "n1")
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, TolerationSeconds: &bears}}
		h := run(t, newTaintEviction, n, p)
		leavesBetween(t, h, 299*time.Second, 2*time.Second)
	})
}

// A pod that comes to a node which has had its taint for long stays its whole time, counted
// from its binding.
func TestTheTimeOnATaintedNodeBeginsWithTheBinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since, bears := metav1.Now(), int64(60)
		n := node("n1", corev1.ConditionTrue)
		n.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}}
		p := pod("web", "")
		p.CreationTimestamp = since
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: &bears}}
		h := run(t, newTaintEviction, n, p)
		pass(time.Hour)
		p.Spec.NodeName = "n1"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		h.pods.Put(p)
		leavesBetween(t, h, 59*time.Second, 2*time.Second)
	})
}

// A user's taint has no start time; removed and set again, its time starts
// over.
func TestTaintsOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bears := int64(60)
		p := pod("web", "n1")
		p.Spec.Tolerations = []corev1.Toleration{{Key: "evict", Operator: corev1.TolerationOpExists, TolerationSeconds: &bears}}
		h := run(t, newTaintEviction, node("n1", corev1.ConditionTrue), p)
		taint := func(taints ...corev1.Taint) {
			n := node("n1", corev1.ConditionTrue)
			n.Spec.Taints = taints
			h.nodes.Put(n)
			synctest.Wait()
		}
		evict := corev1.Taint{Key: "evict", Effect: corev1.TaintEffectNoExecute}
		taint(evict)
		pass(50 * time.Second)
		taint()
		pass(50 * time.Second)
		taint(evict)
		pass(50 * time.Second)
		taint(evict, corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule})
		leavesBetween(t, h, 5*time.Second, 10*time.Second)
	})
}

// Whoever shortens the time for which a pod that runs tolerates a taint need not wait for
// the old one to be over.
func TestTolerationsThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := metav1.Now()
		n := node("n1", corev1.ConditionTrue)
		n.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}}
		p := pod("web", "n1")
		p.Spec.Tolerations = []corev1.Toleration{{Key: "maintenance", Operator: corev1.TolerationOpExists}}
		h := run(t, newTaintEviction, n, p)
		pass(time.Minute)
		p.Spec.Tolerations = []corev1.Toleration{{Key: "maintenance", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(90))}}
		h.pods.Put(p)
		leavesBetween(t, h, 29*time.Second, 2*time.Second)
	})
}
