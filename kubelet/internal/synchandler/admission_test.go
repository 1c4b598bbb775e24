package synchandler

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
)

// bed has what an Admission asks about pods. Nothing of them has begun.
type bed struct {
	*Admission
	t           *testing.T
	pods        *podmanager.Manager
	allocations *allocation.Manager
	clock       *clocktesting.FakeClock
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, pods: podmanager.New(), allocations: allocation.New(), clock: clocktesting.NewFakeClock(time.Now())}
	workers := podworker.New(t.Context(), nil, podworker.Options{Clock: b.clock})
	statuses := status.NewManager(status.Options{Pods: b.pods, Clock: b.clock})
	b.Admission = NewAdmission(AdmissionOptions{
		Pods: b.pods, Active: activepods.New(b.pods, workers, statuses, podcache.New()), Allocations: b.allocations, Clock: b.clock,
	})
	return b
}

func podNamed(name string, phase corev1.PodPhase) *core.Pod {
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "main"}}}, Status: core.PodStatus{Phase: phase},
	}
}

// The pods of the node are looked at once for many new ones, and what becomes of these is known
// at once.
func TestActivePodsOfARound(t *testing.T) {
	b := newBed(t)
	first, second, third := podNamed("first", ""), podNamed("second", ""), podNamed("third", "")
	b.pods.Set(podNamed("runs", corev1.PodRunning))
	round := b.begin()
	expect := func(when string, want ...string) {
		t.Helper()
		var names []string
		for _, pod := range round.beside(third) {
			names = append(names, pod.Name)
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%s: %q, want %q", when, names, want)
		}
	}
	b.pods.Set(first)
	expect("at first", "first", "runs")
	b.clock.Step(activeFor - 1)
	b.pods.Set(second)
	expect("one is not handled yet", "first", "runs")
	round.update(second)
	round.update(third)
	expect("two were admitted", "first", "runs", "second")
	round.update(podNamed("first", corev1.PodFailed))
	expect("one was refused", "runs", "second")
	b.clock.Step(1)
	expect("all are looked at again", "first", "runs", "second")
}

// A resize that is granted between two new pods counts for the second.
func TestActivePodsAfterAGrant(t *testing.T) {
	b := newBed(t)
	sized := func(cpu string) *core.Pod {
		pod := podNamed("resized", "")
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return pod
	}
	small := sized("1")
	b.pods.Set(small)
	b.allocations.Admit(small)
	round := b.begin()
	expect := func(when, want string) {
		t.Helper()
		others := round.beside(podNamed("new", ""))
		if len(others) != 1 || others[0].Spec.Containers[0].Resources.Requests.Cpu().String() != want {
			t.Errorf("%s: beside %v", when, others)
		}
	}
	expect("before", "1")
	b.allocations.Allocate(sized("3"), func(*core.Pod, func(*core.Pod) *core.Pod) *core.PodCondition { return nil })
	expect("after", "3")
}
