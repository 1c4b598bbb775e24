package defaultpreemption

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/nominator"
)

// victim is a pod of a priority that has run since a second; 0 means not yet.
func victim(priority int32, since int64) *framework.PodInfo {
	pod := &core.Pod{Spec: corev1.PodSpec{Priority: &priority}}
	if since != 0 {
		start := metav1.Unix(since, 0)
		pod.Status.StartTime = &start
	}
	return framework.NewPodInfo(pod)
}

// Of two nodes, the one whose victims are the lesser loss is taken: each rule counts only
// where those before it see no difference.
func TestBetter(t *testing.T) {
	of := func(violations int, victims ...*framework.PodInfo) *candidate {
		return &candidate{victims: victims, violations: violations}
	}
	for name, c := range map[string]struct{ better, worse *candidate }{
		"fewer budgets broken":              {of(0, victim(9, 1), victim(9, 1)), of(1, victim(1, 5))},
		"a lower highest priority":          {of(0, victim(1, 1), victim(1, 1), victim(1, 1)), of(0, victim(2, 5))},
		"a smaller sum":                     {of(0, victim(3, 1), victim(1, 1)), of(0, victim(3, 5), victim(2, 5))},
		"fewer victims":                     {of(0, victim(-5, 1)), of(0, victim(-5, 5), victim(-1<<31, 5))},
		"the most important started later":  {of(0, victim(3, 5), victim(1, 1)), of(0, victim(3, 4), victim(1, 9))},
		"the first of them counts":          {of(0, victim(3, 9), victim(3, 5)), of(0, victim(3, 9), victim(3, 4))},
		"whatever their order":              {of(0, victim(3, 5), victim(3, 9)), of(0, victim(3, 4), victim(3, 9))},
		"one that does not run started now": {of(0, victim(3, 0)), of(0, victim(3, time.Now().Unix()))},
	} {
		if !c.better.better(c.worse) || c.worse.better(c.better) {
			t.Errorf("%s: %v, and the other way round %v", name, c.better.better(c.worse), c.worse.better(c.better))
		}
	}
	if same := of(1, victim(3, 5)); same.better(of(1, victim(3, 5))) {
		t.Error("of two that are the same, one is better") // the first that was found would lose
	}
}

// A pod waits for those that leave its node on its behalf, and only for them.
func TestIneligible(t *testing.T) {
	ends := func(priority int32, target *corev1.PodCondition) *framework.PodInfo {
		pod := victim(priority, 1).Pod
		pod.UID, pod.DeletionTimestamp = "leaving", &metav1.Time{}
		if target != nil {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, *target}
		}
		return framework.NewPodInfo(pod)
	}
	target := func(status corev1.ConditionStatus, reason string) *corev1.PodCondition {
		return &corev1.PodCondition{Type: corev1.DisruptionTarget, Status: status, Reason: reason}
	}
	byUs := target(corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler)
	for name, c := range map[string]struct {
		other  *framework.PodInfo
		asked  bool // preemption has asked it to leave, which nobody has seen yet
		beyond bool // the node can't be helped
		waits  bool
	}{
		"preempted":                {other: ends(1, byUs), waits: true},
		"asked to leave":           {other: victim(1, 1), asked: true, waits: true},
		"of the same priority":     {other: ends(5, byUs)},
		"deleted by somebody":      {other: ends(1, nil)},
		"evicted by somebody":      {other: ends(1, target(corev1.ConditionTrue, "EvictionByEvictionAPI"))},
		"no longer a target":       {other: ends(1, target(corev1.ConditionFalse, corev1.PodReasonPreemptionByScheduler))},
		"it stays":                 {other: victim(1, 1)},
		"its node can't be helped": {other: ends(1, byUs), beyond: true},
	} {
		t.Run(name, func(t *testing.T) {
			nominations := nominator.New()
			preemptor := victim(5, 0)
			preemptor.Pod.UID = "preemptor"
			nominations.Set(preemptor.Pod, "n")
			if c.other.Pod.UID == "" {
				c.other.Pod.UID = types.UID("other")
			}
			if c.asked {
				nominations.AskToLeave(c.other.Pod.UID)
			}
			node := &framework.NodeInfo{Node: &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, Pods: []*framework.PodInfo{c.other}}
			state := framework.NewCycleState(nil)
			state.Nodes = []*framework.NodeInfo{node}
			refused := framework.Refused{Nodes: slices.Clone(state.Nodes)}
			if c.beyond {
				refused.Nodes = nil
			}
			why := New(DefaultOptions, Services{Nominator: nominations}).ineligible(preemptor, state, refused)
			if waits := strings.Contains(why, "a terminating pod on the nominated node"); waits != c.waits || !waits && why != "" {
				t.Errorf("%q", why)
			}
		})
	}
}
