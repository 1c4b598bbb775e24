package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// Of two pods that wait for the same room the one that waits longer gets it, though
// each is tried again as it was before the API knew that it waits.
func TestDeferredResizesAgreeOnTheirPriority(t *testing.T) {
	b, _ := newHollowBed(t, nil) // of 8 CPUs
	b.api.wait("the kubelet to have heard of all pods", b.kubelet.ready.All)
	sized := func(name, cpu string) *core.Pod {
		pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
		return pod
	}
	names := []string{"first", "second"}
	for i, name := range names {
		b.kubelet.grant(sized(name, "100m"))
		pod, since := sized(name, "5"), metav1.NewTime(time.Unix(int64(1000+i), 0))
		pod.Status.Conditions = []core.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, LastTransitionTime: since}}
		b.kubelet.pods.Set(pod)
		defer b.kubelet.pods.Remove(pod)
	}
	for _, name := range []string{"second", "first"} {
		b.kubelet.grant(sized(name, "5"))
		pending := b.kubelet.allocations.Pending(types.UID(name))
		if granted := pending == nil; granted != (name == "first") {
			t.Errorf("%s: %+v", name, pending)
		}
	}
}
