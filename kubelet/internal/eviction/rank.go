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

// rank puts the pods in the order in which they are evicted when the node is
// short: first those that use more than they requested, among these the ones of
// low priority, and among these the ones that exceed their request most. Inodes
// and process ids can't be requested, so there priority decides, and then usage.
// On a node with two disks only what is on the one counts that is full.
func rank(signal Signal, apart Apart, pods []*core.Pod, usages map[types.UID]*Usage) []*core.Pod {
	type candidate struct {
		pod      *core.Pod
		above    int64
		exceeds  bool
		priority int32
	}
	var candidates []candidate
	for _, pod := range pods {
		above := usages[pod.UID].of(signal, apart)
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

// requestable is the resource that containers request for a signal.
var requestable = map[Signal]corev1.ResourceName{
	MemoryAvailable: corev1.ResourceMemory, PodsMemoryAvailable: corev1.ResourceMemory,
	NodeFSAvailable: corev1.ResourceEphemeralStorage, ImageFSAvailable: corev1.ResourceEphemeralStorage,
}

// of is what counts for a signal. Nothing of a pod is on a disk that has only images.
func (u *Usage) of(signal Signal, apart Apart) int64 {
	all, layer := u.Disk, u.Layer.Bytes
	switch signal {
	case MemoryAvailable, PodsMemoryAvailable:
		return u.Memory
	case PIDAvailable:
		return u.Processes
	case NodeFSInodesFree, ImageFSInodesFree:
		all, layer = u.Inodes, u.Layer.Inodes
	}
	switch images := apart.Images && ofImages(signal); {
	case images && apart.Layers:
		return layer
	case images:
		return 0
	case apart.Layers:
		return all - layer
	}
	return all
}

func ofImages(signal Signal) bool { return signal == ImageFSAvailable || signal == ImageFSInodesFree }

// Offenders is why a pod is evicted: what the node was short of, and which of the
// pod's containers used more of it than they had requested, and how much.
type Offenders struct{ Starved, Containers, Usage, Pod, PodUsage string }

// Annotations are those of upstream's eviction events.
func (b Offenders) Annotations() map[string]string {
	if b.Starved == "" {
		return nil
	}
	annotations := map[string]string{"starved_resource": b.Starved, "offending_containers": b.Containers,
		"offending_containers_usage": b.Usage}
	if b.Pod != "" {
		annotations["offending_pod"], annotations["offending_pod_usage"] = b.Pod, b.PodUsage
	}
	return annotations
}

// evictionMessage says why the pod is evicted, in upstream's words.
func evictionMessage(t Threshold, seen Observation, pod *core.Pod, usage *Usage) (string, Offenders) {
	var b strings.Builder
	why := Offenders{Starved: resources[t.Signal]}
	fmt.Fprintf(&b, "The node was low on resource: %s. Threshold quantity: %s, available: %s. ",
		why.Starved, formatAmount(t.Signal, t.Value.of(seen.Capacity)), formatAmount(t.Signal, seen.Available))
	name, ok := requestable[t.Signal]
	if !ok {
		return b.String(), why
	}
	const over = "%s %s was using %s, request is %s, has larger consumption of %s. "
	if request, ok := podRequest(pod, name); ok {
		why.Pod, why.PodUsage = pod.Name, formatAmount(t.Signal, usage.of(t.Signal, seen.Apart))
		fmt.Fprintf(&b, over, "Pod", why.Pod, why.PodUsage, request.String(), name)
	}
	var names, amounts []string
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		used, request := usage.Containers[c.Name].of(t.Signal), c.Resources.Requests[name]
		if used > request.Value() {
			names, amounts = append(names, c.Name), append(amounts, formatAmount(t.Signal, used))
			fmt.Fprintf(&b, over, "Container", c.Name, formatAmount(t.Signal, used), request.String(), name)
		}
	}
	why.Containers, why.Usage = strings.Join(names, ","), strings.Join(amounts, ",")
	return b.String(), why
}

// podRequest is what the pod as a whole requests of memory, if it says so.
func podRequest(pod *core.Pod, name corev1.ResourceName) (request resource.Quantity, ok bool) {
	if pod.Spec.Resources != nil && name == corev1.ResourceMemory {
		request, ok = pod.Spec.Resources.Requests[name]
	}
	return request, ok
}

func (s Share) of(signal Signal) int64 {
	if requestable[signal] == corev1.ResourceMemory {
		return s.Memory
	}
	return s.Disk
}

// formatAmount writes an amount as people read it: bytes in binary multiples.
func formatAmount(signal Signal, amount int64) string {
	if _, bytes := requestable[signal]; !bytes {
		return fmt.Sprint(amount)
	}
	if amount >= 1<<20 {
		amount = amount >> 10 << 10 // or it would not be shortened to Ki
	}
	return resource.NewQuantity(amount, resource.BinarySI).String()
}
