package admit

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// ResizeRequest is a running pod, with the resources that it has and those that it wants:
// the same object if these are equal.
type ResizeRequest struct{ Allocated, Desired *core.Pod }

// Resize decides whether a running pod's resources may be changed: it is refused as
// Infeasible if the node is too small, and as Deferred if it may fit later. Other
// waiting pods that come first get theirs first, as far as they fit: those of higher
// priority, then guaranteed ones, then those that have waited longer (KEP-1287,
// "Priority of Resize Requests").
func Resize(pod ResizeRequest, others []ResizeRequest, allocatable corev1.ResourceList) Decision {
	if alone := fits(pod.Desired, nil, allocatable); !alone.Admitted {
		return Decision{Reason: corev1.PodReasonInfeasible, Message: alone.Message}
	}
	var have []*core.Pod
	for _, other := range others {
		have = append(have, other.Allocated)
	}
	for _, i := range waitingBefore(pod, others) {
		beside := append(slices.Delete(slices.Clone(have), i, i+1), pod.Allocated)
		if fits(others[i].Desired, beside, allocatable).Admitted {
			have[i] = others[i].Desired
		}
	}
	if beside := fits(pod.Desired, have, allocatable); !beside.Admitted {
		return Decision{Reason: corev1.PodReasonDeferred, Message: beside.Message, InsufficientResource: beside.InsufficientResource}
	}
	return Decision{Admitted: true}
}

// waitingBefore are the indices of the waiting pods that come before the pod, in order.
func waitingBefore(pod ResizeRequest, others []ResizeRequest) []int {
	var waiting []int
	for i, other := range others {
		if other.Allocated != other.Desired && byResizePriority(other.Desired, pod.Desired) < 0 {
			waiting = append(waiting, i)
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return byResizePriority(others[a].Desired, others[b].Desired) })
	return waiting
}

func byResizePriority(a, b *core.Pod) int {
	return cmp.Or(
		cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)),
		cmp.Compare(class(b), class(a)),
		cmp.Compare(waitsSince(a), waitsSince(b)),
	)
}

// waitsSince is the second since when the API shows that the pod waits; pods for
// which it does not show that yet come last.
func waitsSince(pod *core.Pod) int64 {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Unix()
		}
	}
	return math.MaxInt64
}
