package faults_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// TestKubeletKilledAtAnyMoment kills the kubelet again and again while pods
// start and end. No pod is started twice, and all of them go.
func TestKubeletKilledAtAnyMoment(t *testing.T) {
	harness.NeedLong(t, "it takes minutes")
	c := harness.Start(t, harness.Options{})
	killing := func(times int) {
		for range times {
			// A random moment, not synchronisation: nothing waits for this sleep.
			time.Sleep(rand.N(900 * time.Millisecond))
			c.Kill("kubelet")
			c.Up()
		}
	}
	for round := range 4 {
		prefix := fmt.Sprintf("round-%d", round)
		createAll(t, c, prefix)
		killing(4)
		for i := range pods {
			c.AwaitRunning(fmt.Sprintf("%s-%d", prefix, i))
		}
		onceEach(t, c, prefix)
		for i := range pods {
			pod, err := c.Client().CoreV1().Pods("default").Get(t.Context(), fmt.Sprintf("%s-%d", prefix, i), metav1.GetOptions{})
			if err != nil || restartsOf(&pod.Status.ContainerStatuses[0]) != 0 {
				t.Errorf("%v, %+v", err, pod.Status.ContainerStatuses)
			}
		}
		if err := c.Client().CoreV1().Pods("default").DeleteCollection(t.Context(), *metav1.NewDeleteOptions(2), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		killing(4)
		for i := range pods {
			c.AwaitGone(fmt.Sprintf("%s-%d", prefix, i))
		}
	}
	harness.Eventually(t, 2*time.Minute, func() error {
		if running := harness.RunningContainers(t, c.Dir); len(running) > 0 {
			return fmt.Errorf("still there: %v", running)
		}
		return nil
	})
}

// restartsOf is how often a container that had run was started again. If the
// kubelet goes away while it waits for a container's start, containerd 1.6
// gives up the start and kills the shim: such a container never ran, but is
// counted as one restart.
func restartsOf(s *corev1.ContainerStatus) int32 {
	last := s.LastTerminationState.Terminated
	if last == nil || last.Reason != "StartError" {
		return s.RestartCount
	}
	if strings.Contains(last.Message, "context canceled") || strings.Contains(last.Message, "failed to start shim: start failed: : signal: killed") {
		return s.RestartCount - 1
	}
	return s.RestartCount
}

// TestTheAPIServerIsAwayForTenMinutes stops the API server for ten minutes.
// Pods go on, crashed ones are restarted, and afterwards the API shows all of
// it.
func TestTheAPIServerIsAwayForTenMinutes(t *testing.T) {
	harness.NeedLong(t, "it takes minutes")
	c := harness.Start(t, harness.Options{})
	c.Create(harness.Pod("well", harness.Demo, "sleep", "infinity"))
	crash := harness.Pod("crash", harness.Demo, "exit", "1")
	crash.Spec.RestartPolicy = corev1.RestartPolicyAlways
	c.Create(crash)
	before := c.AwaitRunning("well")
	restarted := func(least int32) *corev1.Pod {
		return c.Await("default", "crash", fmt.Sprintf("%d restarts", least), func(p *corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].RestartCount >= least
		})
	}
	first := restarted(1).Status.ContainerStatuses[0].RestartCount
	c.Kill("apiserver")
	time.Sleep(10 * time.Minute) // the absence under test
	c.Up()
	restarted(first + 2)
	after := c.AwaitRunning("well")
	if a, b := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; a.ContainerID != b.ContainerID || b.RestartCount != 0 {
		t.Errorf("the pod that was well has container %s, restarted %d times; it was %s", b.ContainerID, b.RestartCount, a.ContainerID)
	}
}
