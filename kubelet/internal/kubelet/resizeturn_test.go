package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// Of two pods that wait for the same room the one that waits longer gets it, though
// each is tried again as it was before the API knew that it waits.
func TestPodsThatWaitForRoomAgreeOnTheirTurn(t *testing.T) {
	sized := func(name, cpu string) *core.Pod {
		pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
		return pod
	}
	pods, names := podmanager.New(), []string{"first", "second"}
	known := map[string]*core.Pod{}
	for i, name := range names {
		pod := sized(name, "1300m")
		since := metav1.NewTime(time.Unix(int64(1000+i), 0))
		pod.Status.Conditions = []core.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, LastTransitionTime: since}}
		pods.Set(pod)
		known[name] = pod
	}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("10")}
	for i, name := range names {
		other := names[1-i]
		wants := withKnownStatus(pods, sized(name, "1300m"))
		got := admit.Resize(admit.Wish{Has: sized(name, "100m"), Wants: wants}, []admit.Wish{{Has: sized(other, "100m"), Wants: known[other]}}, room)
		if got.Admitted != (name == "first") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
