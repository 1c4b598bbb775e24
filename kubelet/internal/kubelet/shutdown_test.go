package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/shutdown/shutdowntest"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// When the machine is shut down, pods end in order, new ones are refused, and
// the node says why. When the shutdown is called off, the node is as before.
func TestPodsEndBeforeTheMachineDoes(t *testing.T) {
	address, _ := shutdowntest.StartBus(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
	logind := shutdowntest.StartLogind(t, address, time.Hour)
	b, _ := newHollowBed(t, func(c *config.Config) {
		c.Shutdown.GracePeriod, c.Shutdown.CriticalPodsGracePeriod = 20*time.Minute, 10*time.Minute
	})
	logind.Await("a lock", true)
	ready := func() corev1.NodeCondition {
		n := &core.Node{}
		if b.api.object("/api/v1/nodes/node-1", n) {
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady {
					return c
				}
			}
		}
		return corev1.NodeCondition{}
	}
	b.api.wait("the node", func() bool { return ready().Status == corev1.ConditionTrue })

	important := int32(core.SystemCriticalPriority)
	critical := hollowPod("critical", nil)
	critical.Spec.Priority = &important
	b.create(critical)
	b.create(hollowPod("web", nil))
	stubborn := hollowPod("stubborn", map[string]string{simulated.Stubborn: "true"})
	*stubborn.Spec.TerminationGracePeriodSeconds = 1
	b.create(stubborn)
	for _, name := range []string{"critical", "web", "stubborn"} {
		b.waitPhase(name, corev1.PodRunning)
	}
	logind.Announce(true)
	logind.Await("the lock to be given back", false)
	for _, name := range []string{"web", "stubborn", "critical"} {
		status := b.api.pod(name).Status // the machine is off now: nothing is reported later
		if status.Phase != corev1.PodFailed || status.Reason != "Terminated" || status.Message != "Pod was terminated in response to imminent node shutdown." {
			t.Errorf("%s: %s, %s, %s", name, status.Phase, status.Reason, status.Message)
		}
		if c := condition(&status, corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonTerminationByKubelet {
			t.Errorf("%s: DisruptionTarget %+v", name, c)
		}
	}
	b.api.wait("the node to say so", func() bool { return ready().Status == corev1.ConditionFalse })
	if c := ready(); c.Reason != "KubeletNotReady" || c.Message != "node is shutting down" {
		t.Errorf("condition %+v", c)
	}
	b.create(hollowPod("late", nil))
	if status := b.waitPhase("late", corev1.PodFailed).Status; status.Reason != "NodeShutdown" ||
		status.Message != "Pod was rejected: Pod was rejected as the node is shutting down." {
		t.Errorf("late: %s, %s", status.Reason, status.Message)
	}
	if b.value("kubelet_graceful_shutdown_start_time_seconds") == 0 || b.value("kubelet_graceful_shutdown_end_time_seconds") == 0 {
		t.Error("no metric says when it began and when pods had ended")
	}

	logind.Announce(false)
	logind.Await("a lock again", true)
	b.api.wait("the node to be ready again", func() bool { return ready().Status == corev1.ConditionTrue })
	b.waitEvent("node-1", "Starting", "Starting kubelet.")
	b.waitEvent("node-1", "Shutdown", "Shutdown manager detected shutdown event")
	b.waitEvent("node-1", "Shutdown", "Shutdown manager detected shutdown cancellation")
	b.create(hollowPod("next", nil))
	b.waitPhase("next", corev1.PodRunning)
}

func condition(status *core.PodStatus, t corev1.PodConditionType) *core.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == t {
			return &status.Conditions[i]
		}
	}
	return nil
}
