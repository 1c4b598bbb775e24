package cgroup

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"kctl/proto/core"
)

// MemoryInUse says that a memory limit is below the usage, both in bytes: the kernel
// would refuse it (cgroup v1), or kill processes because of it (cgroup v2). whose names
// the owner of the limit for people.
func MemoryInUse(whose string, limit, used int64) error {
	if used > limit {
		return fmt.Errorf("attempting to set %s memory limit (%d) below current usage (%d)", whose, limit, used)
	}
	return nil
}

// CannotDecrease joins all MemoryInUse errors of a pod and its containers.
func CannotDecrease(inUse ...error) error {
	if err := utilerrors.NewAggregate(inUse); err != nil {
		return fmt.Errorf("cannot decrease memory limits: %w", err)
	}
	return nil
}

// MemoryInUse says that the new limit of the pod as a whole, if it was higher before or
// there was none, is below what the pod uses now.
func (m *Manager) MemoryInUse(pod, before *core.Pod) error {
	_, limit := podLimits(pod)
	if _, was := podLimits(before); !m.PerQOS || limit == 0 || was != 0 && limit >= was {
		return nil
	}
	now, err := m.Usage(pod)
	if err != nil {
		return fmt.Errorf("control group of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return MemoryInUse("pod", limit, int64(now.WorkingSet))
}

// Unfinished returns the pod as its group still is, if that is larger in memory than the pod is to be and this
// kubelet has not made it so: an earlier one ended between resizing the last container and the group.
// It returns nil if there is nothing to finish.
func (m *Manager) Unfinished(pod *core.Pod) *core.Pod {
	_, limit := podLimits(pod)
	if _, mine := m.applied.Load(pod.UID); mine || !m.PerQOS || limit == 0 {
		return nil
	}
	now, err := m.Usage(pod)
	if err != nil || int64(now.Limit) <= limit { // no group yet, or none with a limit
		return nil
	}
	memory := resource.NewQuantity(int64(now.Limit), resource.BinarySI)
	memory.Sub(pod.Spec.Overhead[corev1.ResourceMemory])
	was := pod.DeepCopy()
	if was.Spec.Resources == nil {
		was.Spec.Resources = &corev1.ResourceRequirements{}
	}
	if was.Spec.Resources.Limits == nil {
		was.Spec.Resources.Limits = corev1.ResourceList{}
	}
	was.Spec.Resources.Limits[corev1.ResourceMemory] = *memory
	return was
}

// SetFinalLimits gives the pod's group its final limits after RaiseLimits, once the containers
// have theirs.
func (m *Manager) SetFinalLimits(pod, before *core.Pod) error {
	if err := CannotDecrease(m.MemoryInUse(pod, before)); err != nil {
		return err
	}
	return m.Create(pod)
}
