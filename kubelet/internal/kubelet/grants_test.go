package kubelet

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

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
	if a, c := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; a.ContainerID != c.ContainerID || c.AllocatedResources.Cpu().String() != "100m" {
		t.Errorf("it has %+v, before %+v", c, a)
	}
}

// It knows that a resize was done, even if the API was never told. Otherwise it would do it once
// more, which restarts the container of a pod that asks for that.
func TestAKubeletThatComesBackAfterAResize(t *testing.T) {
	b := newBed(t)
	sized := shellPod("sized", forever)
	sized.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	sized.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	b.create(sized)
	uid := b.waitPhase("sized", corev1.PodRunning).UID
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
	b.eventually("the resize", func() bool {
		actual, _ := b.kubelet.allocations.Actual(uid, "main")
		return actual.Requests.Cpu().String() == "200m" && restarts() == 1
	})
	b.stop()
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
