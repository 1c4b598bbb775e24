package status

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// A pod has started when the API has all its containers as running. Time for
// pulls, however many in parallel, and for init containers does not count.
func TestAStartIsTold(t *testing.T) {
	var starts []Start
	var sent []time.Duration
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		began := time.Now()
		pod := pods.pod.DeepCopy()
		pod.CreationTimestamp = metav1.NewTime(began)
		pods.set(pod)
		api.pod = pod
		m.Begin(pod, began)
		time.Sleep(100 * time.Second)
		after := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
		m.Pulled("u", after(20), after(40))
		m.Pulled("u", after(10), after(30))
		m.Pulled("u", after(50), after(51))
		m.Pulled("another", after(0), after(100))
		running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(began)}}
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(after(60)), FinishedAt: metav1.NewTime(after(65))}}
		status := phaseStatus(corev1.PodRunning)
		status.InitContainerStatuses = []core.ContainerStatus{{Name: "first", State: ended}, {Name: "side", State: running}}
		status.ContainerStatuses = []core.ContainerStatus{{Name: "a", State: running},
			{Name: "b", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
		m.Set(pod, status)
		synctest.Wait()
		if len(starts) != 0 {
			t.Fatalf("started while a container waits: %+v", starts)
		}
		api.slow = 2 * time.Second
		status.ContainerStatuses = slices.Clone(status.ContainerStatuses)
		status.ContainerStatuses[1].State = running
		m.Set(pod, status)
		time.Sleep(time.Second)
		status.Message = "another change meanwhile"
		m.Set(pod, status)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(starts) != 1 || starts[0].Took != 102*time.Second || starts[0].Excused != 36*time.Second {
			t.Errorf("%+v, want one start of 102 s, of which 36 are excused", starts)
		}
		if want := []time.Duration{0, 2 * time.Second, 2 * time.Second}; !slices.Equal(sent, want) {
			t.Errorf("statuses took %v, want %v", sent, want)
		}
	}, func(o *Options) {
		o.Started = func(s Start) { starts = append(starts, s) }
		o.Sent = func(took time.Duration) { sent = append(sent, took) }
	})
}
