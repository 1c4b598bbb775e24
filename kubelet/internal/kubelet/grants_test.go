package kubelet

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
)

// A pod that waits for the room that it was resized to has what it was granted when the kubelet
// comes back: it is not refused because the node has no room for what it asks for.
func TestAKubeletThatComesBackToADeferredResize(t *testing.T) {
	b := newBed(t)
	sized := shellPod("sized", forever)
	sized.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	b.create(sized)
	before := b.waitPhase("sized", corev1.PodRunning)
	b.resize("sized", "1000")
	b.api.wait("the resize to be refused", func() bool { return pending(b.api.pod("sized")) != "" })
	b.stop()
	b.start()
	b.create(shellPod("comes", forever))
	b.waitPhase("comes", corev1.PodRunning)
	after := b.waitPhase("sized", corev1.PodRunning)
	if a, c := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; a.ContainerID != c.ContainerID ||
		c.AllocatedResources.Cpu().String() != "100m" {
		t.Errorf("it has %+v, before %+v", c, a)
	}
}

// It knows that a resize was done, even if the API was never told. Otherwise it would do it once
// more, which restarts the container of a pod that asks for that.
func TestAKubeletThatComesBackAfterAResize(t *testing.T) {
	t.Run("stopped", func(t *testing.T) { comesBackAfterAResize(t, newBed(t), func(b *bed) { b.stop() }) })
	t.Run("killed", func(t *testing.T) {
		b := newBed(t)
		b.stop()
		b.start(func(k *Kubelet) { k.grants.Clock = clocktesting.NewFakeClock(time.Now()) }) // it has no time to record anything later
		comesBackAfterAResize(t, b, func(b *bed) {
			left := os.DirFS(b.config.RootDir)
			then := map[string][]byte{}
			for _, name := range []string{"allocated_pods_state", "actuated_pods_state"} {
				text, err := fs.ReadFile(left, name)
				if err != nil {
					t.Fatal(err)
				}
				then[name] = text
			}
			b.stop() // which records what it still can
			for name, text := range then {
				if err := os.WriteFile(filepath.Join(b.config.RootDir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}

func comesBackAfterAResize(t *testing.T, b *bed, end func(*bed)) {
	sized := shellPod("sized", forever)
	sized.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	sized.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	b.create(sized)
	b.waitPhase("sized", corev1.PodRunning)
	refuse := func(refuses func(*http.Request, []byte) bool) {
		b.api.mu.Lock()
		defer b.api.mu.Unlock()
		b.api.refuses = refuses
	}
	refuse(func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/pods/sized/status") })
	b.resize("sized", "200m")
	restarts := func() int {
		containers, err := b.containerd.Client().ListContainers(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(containers) - 1
	}
	b.eventually("the resize, and its record", func() bool {
		recorded, err := os.ReadFile(filepath.Join(b.config.RootDir, "actuated_pods_state"))
		return err == nil && strings.Contains(string(recorded), "200m") && restarts() == 1
	})
	end(b)
	b.start()
	refuse(nil)
	b.create(shellPod("comes", forever))
	b.waitPhase("comes", corev1.PodRunning)
	b.api.wait("the resize to be told", func() bool {
		return b.api.pod("sized").Status.ContainerStatuses[0].Resources.Requests.Cpu().String() == "200m"
	})
	if status := b.api.pod("sized").Status.ContainerStatuses[0]; status.RestartCount != 1 {
		t.Errorf("%+v", status)
	}
}

// A pod that is refused is not recorded, because upstream's kubelet would take it for one that was
// admitted; nor any more if an earlier kubelet admitted it, as before the node was tainted.
func TestPodsThatAreRefusedAreNotRecorded(t *testing.T) {
	b := newBed(t)
	recorded := func(pod *core.Pod) bool {
		b.kubelet.grants.record()
		text, err := os.ReadFile(filepath.Join(b.config.RootDir, "allocated_pods_state"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), string(pod.UID))
	}
	large := shellPod("large", forever)
	large.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	b.create(large)
	b.create(shellPod("small", forever))
	small := b.waitPhase("small", corev1.PodRunning)
	if large := b.waitPhase("large", corev1.PodFailed); recorded(large) || !recorded(small) {
		t.Errorf("the refused one is recorded: %v, the other one: %v", recorded(large), recorded(small))
	}
	b.kubelet.allocations.Admit(b.api.pod("large"))
	b.kubelet.handler.HandlePodAdditions([]*core.Pod{unstarted(b.api.pod("large"))})
	if recorded(b.api.pod("large")) {
		t.Error("what an earlier kubelet admitted is recorded after it was refused")
	}
}

// unstarted is the pod as the API has it if it was never told about it.
func unstarted(pod *core.Pod) *core.Pod {
	pod = pod.DeepCopy()
	pod.Status = core.PodStatus{Phase: corev1.PodPending}
	return pod
}

// resize changes the cpu that a pod requests.
func (b *bed) resize(name, cpu string) {
	b.t.Helper()
	patch := []byte(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}`)
	if err := b.client.Resource(core.Pods, "default").Patch(b.t.Context(), name, types.StrategicMergePatchType, patch, nil); err != nil {
		b.t.Fatal(err)
	}
}

func pending(pod *core.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			return c.Reason
		}
	}
	return ""
}
