package kubelet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// A pod of very many containers starts and ends. Where all of them were stopped at once, containerd
// 1.6's shim mostly hung for good, and where all were started at once, some starts failed.
func TestAPodOfManyContainers(t *testing.T) {
	if !long() {
		t.Skip("skipped: starts 60 containers three times; set KCTL_LONG=1")
	}
	b := newBed(t)
	for round := range 3 {
		pod := shellPod(fmt.Sprintf("many-%d", round), forever)
		one := pod.Spec.Containers[0]
		pod.Spec.Containers = nil
		for i := range 60 {
			another := *one.DeepCopy()
			another.Name = fmt.Sprintf("c%d", i)
			pod.Spec.Containers = append(pod.Spec.Containers, another)
		}
		b.create(pod)
		b.api.wait("all containers to run", func() bool {
			now := b.api.pod(pod.Name)
			return now.Status.Phase == corev1.PodRunning && ready(now)
		})
		for _, c := range b.api.pod(pod.Name).Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("%s was started again: %+v", c.Name, c.LastTerminationState)
			}
		}
		b.deleteWithin(pod.Name, 5)
		b.api.wait("the pod to be gone", func() bool { return b.api.pod(pod.Name) == nil })
	}
	var events corev1.EventList
	if err := b.client.Resource(core.Events, "default").List(t.Context(), &events); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			t.Errorf("%s: %s", e.Reason, e.Message)
		}
	}
}

func ready(pod *core.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if !c.Ready {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers)
}
