package twins_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// TestScheduler has our scheduler and upstream's take over the lease from each
// other, each waiting while the other leads. Each places pods by their requests.
func TestScheduler(t *testing.T) {
	upstream := harness.Upstream(t, "kube-scheduler")
	c := harness.Start(t, harness.Options{Flags: []string{"--scheduler-flags=--leader-elect=true"}})
	s := newScene(t, c)
	flags := append(flagsOf(t, c, "scheduler"), fmt.Sprintf("--secure-port=%d", harness.FreePort(t)))
	c.Create(s.pod("stays"))
	c.AwaitRunning("stays")
	stays := s.container("stays")
	leader := s.leaderAfter("")

	var theirs *twin
	for i, step := range []struct {
		name   string
		change func()
	}{
		{"upstream's", func() {
			theirs = startTwin(t, c, filepath.Join(upstream, "kube-scheduler"), flags...)
			c.Signal("scheduler", syscall.SIGTERM)
		}},
		{"ours", func() {
			c.Up()
			theirs.stop()
		}},
		{"upstream's again", func() {
			theirs = startTwin(t, c, filepath.Join(upstream, "kube-scheduler"), flags...)
			c.Signal("scheduler", syscall.SIGTERM)
		}},
	} {
		step.change()
		leader = s.leaderAfter(leader)
		ok := t.Run(step.name, func(t *testing.T) {
			s := s.in(t)
			s.works(fmt.Sprintf("works-%d", i))
			s.fills(fmt.Sprintf("first-%d", i), fmt.Sprintf("second-%d", i))
		})
		if !ok {
			return
		}
	}
	if is := s.container("stays"); is != stays {
		t.Errorf("the pod was %s and is %s", stays, is)
	}
	s.deleted("stays")
}

// leaderAfter waits until another one than before holds the schedulers' lease,
// and returns who that is.
func (s *scene) leaderAfter(before string) (leader string) {
	s.t.Helper()
	harness.Eventually(s.t, patience, func() error {
		lease, err := s.c.Client().CoordinationV1().Leases("kube-system").Get(s.t.Context(), "kube-scheduler", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" && *holder != before {
			leader = *holder
			return nil
		}
		return fmt.Errorf("the lease: %+v", lease.Spec)
	})
	return leader
}

// fills fills the node with a pod. A second one does not fit, and the scheduler
// says why; it runs as soon as the first one makes room.
func (s *scene) fills(first, second string) {
	s.t.Helper()
	node, err := s.c.Client().CoreV1().Nodes().Get(s.t.Context(), s.c.Node, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	most := resource.NewMilliQuantity(node.Status.Allocatable.Cpu().MilliValue()*6/10, resource.DecimalSI)
	for _, name := range []string{first, second} {
		pod := s.pod(name)
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *most}
		s.c.Create(pod)
		if name == first {
			s.c.AwaitRunning(name)
		}
	}
	pod := s.c.Await("default", second, "unschedulable", func(pod *corev1.Pod) bool { return scheduled(pod) != nil })
	if c := scheduled(pod); c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable ||
		!strings.HasPrefix(c.Message, "0/1 nodes are available: 1 Insufficient cpu.") {
		s.t.Errorf("the second pod does not fit, and is said to be %+v", c)
	}
	harness.Eventually(s.t, patience, func() error {
		if out := s.c.Kctl("get", "events", "--field-selector=reason=FailedScheduling,involvedObject.name="+second, "-o", "name"); out == "" {
			return errors.New("there is no event")
		}
		return nil
	})
	s.deleted(first)
	s.c.AwaitRunning(second)
	s.deleted(second)
}

func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
