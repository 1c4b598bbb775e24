package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
)

// resizeRetry is how often a change of resources is tried again for which the
// node had no room.
const resizeRetry = 5 * time.Second

// grant gives the pod with the resources that its containers are to have now.
func (k *Kubelet) grant(pod *core.Pod) *core.Pod {
	return k.allocations.Grant(pod, func(pod *core.Pod, granted func(*core.Pod) *core.Pod) *core.PodCondition {
		decision := admit.Resize(pod, k.others(pod, granted), k.node.Node().Status.Allocatable)
		if decision.Admitted {
			return nil
		}
		return &core.PodCondition{Type: corev1.PodResizePending, Reason: decision.Reason, Message: decision.Message}
	})
}

// others are the pods that hold resources of the node beside this one.
func (k *Kubelet) others(pod *core.Pod, granted func(*core.Pod) *core.Pod) []*core.Pod {
	var others []*core.Pod
	for _, other := range k.pods.Pods() {
		if other.UID != pod.UID && k.active(other) {
			others = append(others, granted(other))
		}
	}
	return others
}

// makeGroup keeps the pod's control group as its containers need it. While
// they are being resized it has room for what they had, too; the function that
// it returns ends that, once they are.
func (k *Kubelet) makeGroup(job podworker.Job, pod *core.Pod, runtime *podruntime.PodStatus) (settle func() error, err error) {
	none := func() error { return nil }
	if k.resizing(pod.UID, runtime) {
		return func() error { return k.cgroups.Create(pod) }, k.cgroups.Widen(pod, k.allocations.Before(pod))
	}
	if job.First || job.Type == podworker.Change {
		return none, k.cgroups.Create(pod)
	}
	return none, nil
}

// resizing says that a running container has not the resources yet that it was
// granted.
func (k *Kubelet) resizing(uid types.UID, runtime *podruntime.PodStatus) bool {
	for _, c := range runtime.Running() {
		granted, actual, known := k.allocations.Container(uid, c.Name)
		if known && len(podruntime.Resized(granted, actual)) > 0 {
			return true
		}
	}
	return false
}

func (k *Kubelet) resizeConditions(uid types.UID, runtime *podruntime.PodStatus) []core.PodCondition {
	var conditions []core.PodCondition
	if pending := k.allocations.Pending(uid); pending != nil {
		conditions = append(conditions, *pending)
	}
	if k.resizing(uid, runtime) {
		conditions = append(conditions, core.PodCondition{Type: corev1.PodResizeInProgress})
	}
	return conditions
}

// podResources are what one pod's containers run with.
type podResources struct {
	*Kubelet
	uid types.UID
}

func (r podResources) Actual(container string) (corev1.ResourceRequirements, bool) {
	return r.allocations.Actual(r.uid, container)
}

func (r podResources) Applied(container string, resources corev1.ResourceRequirements) {
	r.allocations.Applied(r.uid, container, resources)
}
