package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

func eightCPUs() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("10")}
}

func sized(name, cpu string) *core.Pod {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	pod.Spec.Containers = []corev1.Container{{Name: "c",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return pod
}

// Of two pods that wait for the same room the one that waits longer gets it, though
// each is tried again as it was before the API knew that it waits.
func TestDeferredResizesAgreeOnTheirPriority(t *testing.T) {
	pods, allocations := podmanager.New(), allocation.New()
	l := New(Options{
		Pods: pods, Allocations: allocations, RecordGrants: func() {}, Events: &eventLog{},
		OtherPods: func(pod *core.Pod) []*core.Pod {
			return slices.DeleteFunc(pods.Pods(), func(other *core.Pod) bool { return other.UID == pod.UID })
		},
		Allocatable: eightCPUs,
	})
	names := []string{"first", "second"}
	for i, name := range names {
		l.allocate(sized(name, "100m"))
		pod, since := sized(name, "5"), metav1.NewTime(time.Unix(int64(1000+i), 0))
		pod.Status.Conditions = []core.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, LastTransitionTime: since}}
		pods.Set(pod)
	}
	for _, name := range []string{"second", "first"} {
		l.allocate(sized(name, "5"))
		pending := allocations.Pending(types.UID(name))
		if granted := pending == nil; granted != (name == "first") {
			t.Errorf("%s: %+v", name, pending)
		}
	}
}

// A grant is recorded before anything is done about it, and so is each container's new state;
// where nothing changed, nothing is written.
func TestGrantsAreRecordedAtOnce(t *testing.T) {
	allocations, records := allocation.New(), 0
	l := New(Options{
		Pods:         podmanager.New(),
		Allocations:  allocations,
		RecordGrants: func() { records++ },
		Events:       &eventLog{},
		OtherPods:    func(*core.Pod) []*core.Pod { return nil },
		Allocatable:  eightCPUs,
	})
	for i, step := range []struct {
		cpu  string
		want int
	}{{"1", 0}, {"9", 0}, {"2", 2}, {"2", 0}} {
		records = 0
		pod := l.allocate(sized("p", step.cpu))
		podResources{l, pod}.Applied("c", pod.Spec.Containers[0].Resources)
		if records != step.want {
			t.Errorf("step %d, with %s: recorded %d times, want %d", i, step.cpu, records, step.want)
		}
	}
}

// A resize that has to wait is told of once, and again when another is asked for.
func TestEventsOfWaitingResizes(t *testing.T) {
	events := &eventLog{}
	l := New(Options{
		Pods: podmanager.New(), Allocations: allocation.New(), RecordGrants: func() {}, Events: events,
		OtherPods:   func(*core.Pod) []*core.Pod { return nil },
		Allocatable: eightCPUs,
	})
	for _, step := range []struct {
		cpu        string
		generation int64
		want       int
	}{{"1", 1, 0}, {"9", 2, 1}, {"9", 2, 1}, {"10", 3, 2}} {
		pod := sized("p", step.cpu)
		pod.Generation = step.generation
		l.allocate(pod)
		if len(events.lines) != step.want {
			t.Errorf("%+v: %q", step, events.lines)
		}
	}
}

// What events of a resize say is what upstream's do.
func TestWordsOfAResize(t *testing.T) {
	pod := sized("p", "1800m")
	pod.Generation = 2
	const want = `{"containers":[{"name":"c","resources":{"requests":{"cpu":"1800m"}}}],"generation":2,"error":"no room"}`
	if got := sizes(pod, "no room"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
