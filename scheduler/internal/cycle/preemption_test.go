package cycle

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/scheduler/internal/fixture"
)

// resident is a pod that has run on a node since the given minute.
func resident(name, node, cpu string, priority int32, since int) *core.Pod {
	return fixture.Pod(name, fixture.On(node), fixture.Requests("cpu", cpu), fixture.Priority(priority), func(p *core.Pod) {
		p.Labels = map[string]string{"app": name}
		p.Status.StartTime = &metav1.Time{Time: time.Date(2026, 1, 1, 0, since, 0, 0, time.UTC)}
	})
}

// budget allows no pod of that app to be evicted.
func budget(app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
}

// TestWhoHasToLeave: for a pod that fits nowhere, pods of lower priority are
// evicted where that costs least.
func TestWhoHasToLeave(t *testing.T) {
	important := func(cpu string) *core.Pod {
		return fixture.Pod("important", fixture.Requests("cpu", cpu), fixture.Priority(100))
	}
	never := important("4")
	policy := corev1.PreemptNever
	never.Spec.PreemptionPolicy = &policy
	for name, test := range map[string]struct {
		residents []*core.Pod
		budgets   []*policyv1.PodDisruptionBudget
		pod       *core.Pod
		leave     string // who, in any order
		on        string
		words     string
	}{
		"the only one": {
			residents: []*core.Pod{resident("a", "n1", "3", 0, 1), resident("b", "n2", "4", 100, 1)},
			pod:       important("4"),
			leave:     "a",
			on:        "n1",
			words:     "important: 0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement for pod on node n1, preempting 1 victims",
		},
		"no more than have to": {
			residents: []*core.Pod{resident("a", "n1", "2", 5, 1), resident("b", "n1", "1", 3, 1), resident("c", "n1", "1", 4, 1), resident("d", "n2", "4", 200, 1)},
			pod:       important("1"), leave: "b", on: "n1",
		},
		"the lowest priority": {
			residents: []*core.Pod{resident("a", "n1", "4", 5, 1), resident("b", "n2", "4", 4, 1)}, pod: important("1"), leave: "b", on: "n2",
		},
		"rather few": {
			residents: []*core.Pod{resident("a", "n1", "2", 5, 1), resident("b", "n1", "2", 5, 1), resident("c", "n2", "4", 5, 1)},
			pod:       important("4"),
			leave:     "c",
			on:        "n2",
		},
		"who came last": {
			residents: []*core.Pod{resident("a", "n1", "4", 5, 1), resident("b", "n2", "4", 5, 2)}, pod: important("4"), leave: "b", on: "n2",
		},
		"rather nobody with a budget": {
			residents: []*core.Pod{resident("a", "n1", "4", 1, 1), resident("b", "n2", "4", 50, 1)}, budgets: []*policyv1.PodDisruptionBudget{budget("a")},
			pod: important("4"), leave: "b", on: "n2",
		},
		"budgets are no wall": {
			residents: []*core.Pod{resident("a", "n1", "4", 1, 1), resident("b", "n2", "4", 100, 1)}, budgets: []*policyv1.PodDisruptionBudget{budget("a")},
			pod: important("4"), leave: "a", on: "n1",
		},
		"equals stay": {
			residents: []*core.Pod{resident("a", "n1", "4", 100, 1), resident("b", "n2", "4", 101, 1)},
			pod:       important("4"),
			words:     "important: 0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
		},
		"where it would not help": {
			residents: []*core.Pod{resident("a", "n1", "4", 1, 1)},
			pod:       important("5"),
			words:     "important: 0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
		},
		"never": {
			residents: []*core.Pod{resident("a", "n1", "4", 1, 1), resident("b", "n2", "4", 1, 1)},
			pod:       never,
			words:     "important: 0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withScheduler(t, []*core.Node{fixture.Node("n1"), fixture.Node("n2")}, func(t *testing.T, c *cluster, _ *running) {
				c.budgets = test.budgets
				for _, pod := range test.residents {
					c.create(pod)
				}
				c.create(test.pod)
				synctest.Wait()
				if first, _, _ := strings.Cut(c.said(), "\n"); test.words != "" && !strings.Contains(c.said(), test.words) {
					t.Errorf("said %q\nwant %q", first, test.words)
				}
				time.Sleep(time.Minute)
				if got := c.nodeOf("important"); got != test.on {
					t.Errorf("it is on %q, want %q; said:\n%s", got, test.on, c.said())
				}
				for _, pod := range test.residents {
					if left := !c.has(pod.Name); left != strings.Contains(test.leave, pod.Name) {
						t.Errorf("%s left: %v; said:\n%s", pod.Name, left, c.said())
					}
				}
			})
		})
	}
}

// TestRoomIsKeptForNominated: while pods are being evicted for another, no pod
// of lower priority gets their resources, and no further pod is evicted.
func TestRoomIsKeptForNominated(t *testing.T) {
	withScheduler(t, []*core.Node{fixture.Node("n1"), fixture.Node("n2")}, func(t *testing.T, c *cluster, _ *running) {
		c.create(resident("a", "n1", "4", 1, 2))
		c.create(resident("b", "n2", "4", 1, 1))
		c.create(fixture.Pod("important", fixture.Requests("cpu", "4"), fixture.Priority(100)))
		synctest.Wait()
		if nominated := c.stored()["important"].Status.NominatedNodeName; nominated != "n1" {
			t.Errorf("nominated to %q", nominated)
		}
		// The resources are free while the pod that they are for still waits for its
		// next attempt.
		time.Sleep(500 * time.Millisecond)
		c.delete("a")
		c.create(fixture.Pod("late", fixture.Requests("cpu", "1"), fixture.Priority(0)))
		time.Sleep(time.Minute)
		if c.nodeOf("important") != "n1" || c.nodeOf("late") != "" || !c.has("b") {
			t.Errorf("important is on %q, late on %q, b still there: %v; said:\n%s", c.nodeOf("important"), c.nodeOf("late"), c.has("b"), c.said())
		}
	})
}
