package podruntime

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubelet/internal/runtimestate"
)

// actualResources are those that containers were last started with.
type actualResources map[string]corev1.ResourceRequirements

func (a actualResources) Actual(name string) (corev1.ResourceRequirements, bool) {
	r, known := a[name]
	return r, known
}

func (a actualResources) Applied(name string, r corev1.ResourceRequirements) { a[name] = r }

func (actualResources) PodMemoryInUse() error { return nil }

// Each resize that needs a restart starts the container again at once, whatever its exit code and
// however soon after the last, also with resources that it had before: held back, a container that
// ended well would be one that is done.
func TestEachResizeRestarts(t *testing.T) {
	b := newBed(t)
	pod := newPod("resized", shell("main", endsWell))
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	actual := actualResources{}
	for count, cpu := range []string{"200m", "190m", "200m", "190m"} {
		pod = pod.DeepCopy()
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		r := b.sync(t, pod, SyncOptions{Resources: actual})
		if main := r.Status.Container("main"); r.Err != nil || main.State != runtimestate.StateRunning || main.RestartCount != int32(count) {
			t.Fatalf("with %s: %v %v\n%s", cpu, r.Err, r.Waiting, show(r.Status))
		}
		b.until(t, pod, "ready", func(*runtimestate.PodStatus) bool {
			return strings.Contains(b.log(t, pod, "main", int32(count)), "ready\n")
		})
	}
}
