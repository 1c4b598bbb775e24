package kubelet

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// waitEvicted has the node checked until the pod has failed.
func (b *bed) waitEvicted(name string) *core.Pod {
	b.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for b.phase(name) != corev1.PodFailed {
		if err := b.kubelet.eviction.Synchronize(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("pod %s was not evicted; it is %s", name, b.phase(name))
		}
	}
	return b.api.pod(name)
}

// checkEvicted checks what the status says of an eviction. A pod that exceeded
// a limit of its own has no DisruptionTarget.
func checkEvicted(t *testing.T, pod *core.Pod, message string, disrupted bool) {
	t.Helper()
	var target *corev1.PodCondition
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.DisruptionTarget {
			target = &pod.Status.Conditions[i]
		}
	}
	if pod.Status.Reason != "Evicted" || !strings.HasPrefix(pod.Status.Message, message) {
		t.Errorf("pod %s: %s, %q; want %q", pod.Name, pod.Status.Reason, pod.Status.Message, message)
	}
	if !disrupted {
		if target != nil {
			t.Errorf("pod %s: condition %+v", pod.Name, target)
		}
		return
	}
	if pod.Status.Conditions[0].Type != corev1.DisruptionTarget {
		t.Errorf("pod %s: the first condition is %s", pod.Name, pod.Status.Conditions[0].Type)
	}
	if target == nil || target.Status != corev1.ConditionTrue || target.Reason != "TerminationByKubelet" || target.Message != pod.Status.Message {
		t.Errorf("pod %s: condition %+v", pod.Name, target)
	}
}

// containersOf counts what the runtime has of a pod.
func (b *bed) containersOf(name string) int {
	b.t.Helper()
	containers, err := b.containerd.Client().ListContainers(b.t.Context(), &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{kubelettypes.KubernetesPodNameLabel: name},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return len(containers)
}

func TestPodsAreEvicted(t *testing.T) {
	b := newBed(t)
	limit := resource.MustParse("1Mi")
	full := shellPod("full", "dd if=/dev/zero of=/scratch/file bs=1M count=3; "+forever)
	full.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
	full.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	b.create(full)
	b.create(shellPod("quiet", forever))
	b.waitPhase("quiet", corev1.PodRunning)
	b.waitPhase("full", corev1.PodRunning)
	checkEvicted(t, b.waitEvicted("full"), `Usage of EmptyDir volume "scratch" exceeds the limit "1Mi".`, false)
	b.eventually("nothing to be kept of its containers", func() bool { return b.containersOf("full") == 0 })
	ended := b.api.pod("full").Status
	done := shellPod("done", "exit 0")
	done.Spec.RestartPolicy = corev1.RestartPolicyNever
	b.create(done)
	b.waitPhase("done", corev1.PodSucceeded)
	b.eventually("what a pod that has ended has written to make room", func() bool {
		if err := b.kubelet.collector.Reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
		return b.containersOf("done") == 0
	})
	if b.containersOf("quiet") == 0 {
		t.Error("a pod that runs lost its container")
	}
	if phase := b.phase("quiet"); phase != corev1.PodRunning {
		t.Errorf("the pod within its limits is %s", phase)
	}

	b.stop()
	b.config.Eviction.Soft = map[string]string{"memory.available": "1Pi"} // any machine is short of that
	b.config.Eviction.SoftGrace = map[string]string{"memory.available": "1ms"}
	b.start()
	checkEvicted(t, b.waitEvicted("quiet"), "The node was low on resource: memory. Threshold quantity: 1Pi, available: ", true)
	b.api.wait("the event that says so to programs", func() bool {
		var events corev1.EventList
		if err := b.client.Resource(core.Events, "default").List(t.Context(), &events); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(e core.Event) bool {
			return e.InvolvedObject.Name == "quiet" && e.Reason == "Evicted" && e.Annotations["starved_resource"] == "memory" &&
				e.Annotations["offending_containers"] == "main"
		})
	})
	b.api.wait("the node to say that it is short", func() bool {
		node := &core.Node{}
		b.api.object("/api/v1/nodes/node-1", node)
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeMemoryPressure {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	})
	b.create(shellPod("late", forever))
	if now := b.api.pod("full").Status; !reflect.DeepEqual(now, ended) {
		t.Errorf("the status of the pod whose containers were removed was\n%+v, and is\n%+v", ended, now)
	}
	if late := b.waitPhase("late", corev1.PodFailed); late.Status.Reason != "Evicted" ||
		late.Status.Message != "Pod was rejected: The node had condition: [MemoryPressure]. " {
		t.Errorf("a pod that comes late: %+v", late.Status)
	}
}

// A pod that takes its time to end is evicted like any other, and only once.
func TestPodsThatEndAreEvictable(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	b.create(hollowPod("slow", map[string]string{simulated.Stubborn: "true"}))
	slow := b.waitPhase("slow", corev1.PodRunning)
	evictable := func() bool {
		return slices.ContainsFunc(b.kubelet.eviction.Pods(), func(pod *core.Pod) bool { return pod.UID == slow.UID })
	}
	ending := func() bool { return b.kubelet.workers.Phase(slow.UID) == podworker.Terminating }
	b.delete("slow") // with thirty seconds of grace
	b.eventually("the pod to end", ending)
	if !evictable() {
		t.Error("a pod that ends can't be evicted")
	}
	b.kubelet.killer.Terminate(slow, podkiller.Termination{Reason: podkiller.Evicted, Grace: new(int64(20))})
	b.eventually("the pod not to be evicted again", func() bool { return !evictable() })
	if !ending() {
		t.Error("it has ended")
	}
	b.kubelet.killer.Kill(slow, podworker.KillOptions{GracePeriod: new(int64(1))})
	b.api.wait("the pod to be gone", func() bool { return b.api.pod("slow") == nil })
}
