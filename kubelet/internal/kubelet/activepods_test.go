package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/config"
	"kctl/proto/core"
)

// Of more manifests than the node has room for, as many run as there is room for.
func TestMoreManifestsThanRoom(t *testing.T) {
	const manifests, room = 40, 7
	b, _ := newHollowBed(t, func(c *config.Config) {
		c.StaticPodPath, c.MaxPods = t.TempDir(), room
		for i := range manifests {
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":1,"hostPort":%d}]}]}}`, i, 1+i%20)
			if err := os.WriteFile(filepath.Join(c.StaticPodPath, fmt.Sprint(i, ".json")), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	phases := func() map[corev1.PodPhase]int {
		count := map[corev1.PodPhase]int{}
		for _, pod := range b.kubelet.pods.Pods() {
			status, _ := b.kubelet.statuses.Get(pod.UID)
			count[status.Phase]++
		}
		return count
	}
	b.eventually("as many pods to run as there is room for, and the others to fail", func() bool {
		return phases()[corev1.PodRunning] == room && phases()[corev1.PodFailed] == manifests-room
	})
}

// The pods of the node are looked at once for many new ones, and what becomes of these is known
// at once.
func TestActivePods(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	b.create(hollowPod("runs", nil))
	b.waitPhase("runs", corev1.PodRunning)
	named := func(name string, phase corev1.PodPhase) *core.Pod {
		pod := hollowPod(name, nil)
		pod.UID, pod.Status.Phase = types.UID(name), phase
		return pod
	}
	first, second, third := named("first", ""), named("second", ""), named("third", "")
	a := &activePods{kubelet: b.kubelet}
	expect := func(when string, want ...string) {
		t.Helper()
		var names []string
		for _, pod := range a.beside(third) {
			names = append(names, pod.Name)
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%s: %q, want %q", when, names, want)
		}
	}
	b.kubelet.pods.Set(first)
	expect("at first", "first", "runs")
	a.at = time.Now().Add(time.Hour) // however slow the test is
	b.kubelet.pods.Set(second)
	expect("one is not handled yet", "first", "runs")
	a.update(second)
	a.update(third)
	expect("two were admitted", "first", "runs", "second")
	a.update(named("first", corev1.PodFailed))
	expect("one was refused", "runs", "second")
	a.at = time.Time{}
	expect("all are looked at again", "first", "runs", "second")
	for _, pod := range []*core.Pod{first, second} {
		b.kubelet.pods.Remove(pod)
	}
}

// A resize that is granted between two new pods counts for the second.
func TestActivePodsAfterAGrant(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	b.create(hollowPod("runs", nil))
	b.waitPhase("runs", corev1.PodRunning)
	sized := func(cpu string) *core.Pod {
		pod := hollowPod("resized", nil)
		pod.UID = "resized"
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return pod
	}
	small := sized("1")
	b.kubelet.pods.Set(small)
	b.kubelet.allocations.Admit(small)
	defer b.kubelet.pods.Remove(small)
	a := &activePods{kubelet: b.kubelet}
	expect := func(when, want string) {
		t.Helper()
		others := a.beside(hollowPod("new", nil))
		i := slices.IndexFunc(others, func(pod *core.Pod) bool { return pod.UID == small.UID })
		if i < 0 || others[i].Spec.Containers[0].Resources.Requests.Cpu().String() != want {
			t.Errorf("%s: beside %v", when, others)
		}
	}
	expect("before", "1")
	a.at = time.Now().Add(time.Hour) // however slow the test is
	b.kubelet.allocations.Allocate(sized("3"), func(*core.Pod, func(*core.Pod) *core.Pod) *core.PodCondition { return nil })
	expect("after", "3")
}

// Pods that ended before a kubelet started leave their room to those that run, though all of them
// are new to it.
func TestEndedPodsTakeNoRoomFromARestartedKubelet(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	b.create(hollowPod("first", nil))
	b.waitPhase("first", corev1.PodRunning) // the kubelet has started
	var all []*core.Pod
	for i := range 50 {
		ended := hollowPod(fmt.Sprint("ended-", i), nil)
		ended.UID, ended.Status.Phase = types.UID(ended.Name), corev1.PodSucceeded
		ended.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		all = append(all, ended)
	}
	runs := hollowPod("runs", nil)
	runs.UID, runs.Status.Phase = "runs", corev1.PodRunning
	runs.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	b.kubelet.HandlePodAdditions(append(all, runs))
	if status, known := b.kubelet.statuses.Get(runs.UID); known && status.Phase == corev1.PodFailed {
		t.Errorf("%s: %s", status.Reason, status.Message)
	}
	if !b.kubelet.workers.CouldHaveRunningContainers(runs.UID) {
		t.Error("it has no worker")
	}
	for _, pod := range append(all, runs) {
		b.kubelet.HandlePodRemoves([]*core.Pod{pod})
	}
}
