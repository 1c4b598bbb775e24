package eviction

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// enforceLimits ends the pods that use more of the node's disk than they may.
func (m *Manager) enforceLimits(ctx context.Context, pods []*core.Pod) (ended bool, err error) {
	if m.IgnoreLimits {
		return false, nil
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *core.Pod) bool { return podmanager.IsCritical(pod) || !limited(pod) })
	if len(pods) == 0 {
		m.limits.abandon() // its answer would be old for a static pod that comes back under its UID
		return false, nil
	}
	measured, ok := m.measureDisks(ctx, &m.limits, pods)
	if !ok {
		return false, nil
	}
	if measured.err != nil {
		err = fmt.Errorf("what pods use of the disk: %w", measured.err)
	}
	for _, pod := range pods {
		usage := measured.usages[pod.UID]
		if usage == nil { // the pod began since
			continue
		}
		if signal, message := overLimit(pod, usage); signal != "" {
			m.Evict(ctx, pod, Decision{Grace: hardGrace, Signal: signal, Message: message, Limit: true})
			ended = true
		}
	}
	return ended, err
}

// Signals of pods that use more than they may, by upstream's names.
const (
	emptyDirLimit  = "emptydirfs.limit"
	podLimit       = "ephemeralpodfs.limit"
	containerLimit = "ephemeralcontainerfs.limit"
)

// overLimit says which of its disk limits the pod exceeds; "" for none.
func overLimit(pod *core.Pod, usage *Usage) (signal, message string) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if hasSizeLimit(v) && usage.Volumes[v.Name].Bytes > v.EmptyDir.SizeLimit.Value() {
			return emptyDirLimit, fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, v.EmptyDir.SizeLimit.String())
		}
	}
	limit, ok := diskLimit(pod)
	if ok && usage.Disk > limit.Value() {
		return podLimit, fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
	}
	for _, c := range slices.Concat(sidecars(pod), pod.Spec.Containers) {
		limit := c.Resources.Limits[corev1.ResourceEphemeralStorage]
		if !limit.IsZero() && usage.Containers[c.Name].Disk > limit.Value() { // zero counts for the pod only, as for upstream's kubelet
			return containerLimit, fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())
		}
	}
	return "", ""
}

func sidecars(pod *core.Pod) []core.Container {
	return slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c core.Container) bool {
		return !core.IsSidecar(&c)
	})
}

func hasSizeLimit(v *corev1.Volume) bool {
	return onDisk(v) && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() > 0
}

// limited says that the pod has a limit on its use of the node's disk.
func limited(pod *core.Pod) bool {
	_, ok := diskLimit(pod)
	return ok || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return hasSizeLimit(&v) })
}

// diskLimit is how much of the disk all of the pod's containers may use, init
// containers among them.
func diskLimit(pod *core.Pod) (resource.Quantity, bool) {
	limit, ok := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]
	return limit, ok
}
