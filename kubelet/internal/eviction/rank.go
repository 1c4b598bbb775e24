package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// rank puts the pods in the order in which they are ended when the node is
// short: those first that use more than they requested, of these the ones of
// low priority, of these the ones that are furthest above. Of inodes and process
// ids nothing can be requested, so there priority decides, and then use.
func rank(signal Signal, pods []*core.Pod, usages map[types.UID]*Usage) []*core.Pod {
	type candidate struct {
		pod      *core.Pod
		above    int64
		exceeds  bool
		priority int32
	}
	var candidates []candidate
	for _, pod := range pods {
		above := usages[pod.UID].of(signal)
		exceeds := false
		if name, ok := requestable[signal]; ok {
			request := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[name]
			above -= request.Value()
			exceeds = above > 0
		}
		candidates = append(candidates, candidate{pod, above, exceeds, ptr.Deref(pod.Spec.Priority, 0)})
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		if a.exceeds != b.exceeds {
			if a.exceeds {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(b.above, a.above))
	})
	ranked := make([]*core.Pod, len(candidates))
	for i, c := range candidates {
		ranked[i] = c.pod
	}
	return ranked
}

// requestable is what containers request of what a signal is about.
var requestable = map[Signal]corev1.ResourceName{
	MemoryAvailable: corev1.ResourceMemory, PodsMemoryAvailable: corev1.ResourceMemory,
	NodeFSAvailable: corev1.ResourceEphemeralStorage, ImageFSAvailable: corev1.ResourceEphemeralStorage,
}

func (u *Usage) of(signal Signal) int64 {
	switch signal {
	case MemoryAvailable, PodsMemoryAvailable:
		return u.Memory
	case PIDAvailable:
		return u.Processes
	case NodeFSInodesFree, ImageFSInodesFree:
		return u.Inodes
	}
	return u.Disk
}

// blame says why the pod is ended, in upstream's words.
func blame(t Threshold, seen Observation, pod *core.Pod, usage *Usage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %s. Threshold quantity: %s, available: %s. ",
		resources[t.Signal], words(t.Signal, t.Least.of(seen.Capacity)), words(t.Signal, seen.Available))
	name, ok := requestable[t.Signal]
	if !ok {
		return b.String()
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		used := usage.Containers[c.Name].of(t.Signal)
		request := c.Resources.Requests[name]
		if used > request.Value() {
			fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %s. ",
				c.Name, words(t.Signal, used), request.String(), name)
		}
	}
	return b.String()
}

func (s Share) of(signal Signal) int64 {
	if requestable[signal] == corev1.ResourceMemory {
		return s.Memory
	}
	return s.Disk
}

// words are an amount as people read it: bytes in binary multiples.
func words(signal Signal, amount int64) string {
	if _, bytes := requestable[signal]; !bytes {
		return fmt.Sprint(amount)
	}
	if amount >= 1<<20 {
		amount = amount >> 10 << 10 // or it would not be shortened to Ki
	}
	return resource.NewQuantity(amount, resource.BinarySI).String()
}
