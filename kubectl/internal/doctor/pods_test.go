package doctor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// Pods that no scheduler looks at, beside those about which one has said why they wait.
func TestPodsThatNoSchedulerTakesUp(t *testing.T) {
	now := time.Now()
	s := &Server{Now: func() time.Time { return now }}
	pod := func(name string, change func(*core.Pod)) core.Pod {
		p := core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}
		p.Spec.SchedulerName = corev1.DefaultSchedulerName
		if change != nil {
			change(&p)
		}
		return p
	}
	pods := []core.Pod{
		pod("lost", nil),
		pod("other", func(p *core.Pod) { p.Spec.SchedulerName = "mine" }),
		pod("new", func(p *core.Pod) { p.CreationTimestamp = metav1.NewTime(now) }),
		pod("bound", func(p *core.Pod) { p.Spec.NodeName = "n" }),
		pod("leaves", func(p *core.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }),
		pod("refused", func(p *core.Pod) {
			p.Status.Conditions = []core.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
		}),
	}
	got := s.judgeUnscheduled(pods, func() map[string]time.Time {
		return map[string]time.Time{corev1.DefaultSchedulerName: now.Add(-2 * Patience)}
	})
	if len(got) != 2 || got[0].Result != Fail || got[0].Detail != "default-scheduler does not take up: a/lost" ||
		!strings.Contains(got[0].Advice, "kctl-scheduler") {
		t.Errorf("got %+v", got)
	}
	if len(got) == 2 && (got[1].Result != Warn || got[1].Detail != "mine does not take up: a/other" || strings.Contains(got[1].Advice, "kctl-scheduler")) {
		t.Errorf("got %+v", got[1])
	}
}

// A scheduler that places pods, and has not come to these yet, is not missing.
func TestABacklogIsNoMissingScheduler(t *testing.T) {
	now := time.Now()
	s := &Server{Now: func() time.Time { return now }}
	waiting := []core.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}}
	judge := func(pods string) Check {
		t.Helper()
		var all scheduledPods
		if err := json.Unmarshal([]byte(pods), &all); err != nil {
			t.Fatal(err)
		}
		got := s.judgeUnscheduled(waiting, all.latest)
		if len(got) != 1 {
			t.Fatalf("got %+v", got)
		}
		return got[0]
	}
	pod := func(scheduler, reason string, ago time.Duration) string {
		return fmt.Sprintf(`{"items": [{}, {"spec": {"schedulerName": %q}, "status": {"conditions": [{"type": "Ready"}, {"type": "PodScheduled", "reason": %q, "lastTransitionTime": %q}]}}]}`,
			scheduler, reason, now.Add(-ago).UTC().Format(time.RFC3339))
	}
	if got := judge(pod("default-scheduler", "", 3*time.Second)); got.Result != Warn || !strings.Contains(got.Detail, "a backlog of 1 pod") {
		t.Errorf("it placed a pod: %+v", got)
	}
	if got := judge(pod("default-scheduler", "Unschedulable", 3*time.Second)); got.Result != Warn {
		t.Errorf("it refused a pod: %+v", got)
	}
	labelled := strings.Replace(pod("default-scheduler", "", 0), `{"spec": {`,
		`{"metadata": {"managedFields": [{"fieldsV1": {"f:metadata": {"f:labels": {"f:nodeName": {}}}}}]}, "spec": {`, 1)
	if got := judge(labelled); got.Result != Warn {
		t.Errorf("it placed a pod with a label: %+v", got)
	}
	withNode := strings.Replace(pod("default-scheduler", "", 0), `{"spec": {`,
		`{"metadata": {"managedFields": [{"fieldsV1": {"f:spec": {"f:nodeName": {}}}}]}, "spec": {`, 1)
	for what, pods := range map[string]string{
		"made with a node": withNode,
		"long ago":         pod("default-scheduler", "", time.Minute), "another scheduler": pod("mine", "", 0),
		"a gate, which the API server tells": pod("default-scheduler", "SchedulingGated", 0), "nothing": `{}`,
	} {
		if got := judge(pods); got.Result != Fail {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// An etcd without room looks like kubelets that are gone, except that the control
// plane's own leases age, too.
func TestNothingIsWritten(t *testing.T) {
	now := time.Now()
	s := &Server{Now: func() time.Time { return now }}
	lease := func(age time.Duration) []coordinationv1.Lease {
		renewed := metav1.NewMicroTime(now.Add(-age))
		return []coordinationv1.Lease{{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}, {}}
	}
	if got := s.judgeWrites(lease(time.Minute), lease(53*time.Second)); len(got) != 1 || got[0].Result != Fail || !strings.Contains(got[0].Detail, "for 53s") {
		t.Errorf("got %+v", got)
	}
	for name, got := range map[string][]Check{
		"a node's is new": s.judgeWrites(lease(time.Second), lease(time.Minute)), "the control plane's is new": s.judgeWrites(lease(time.Minute), lease(time.Second)),
		"nobody elects": s.judgeWrites(lease(time.Minute), nil), "there are no nodes": s.judgeWrites(nil, lease(time.Minute)),
	} {
		if len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
