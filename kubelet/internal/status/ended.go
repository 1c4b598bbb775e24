package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/proto/core"
)

// ContainerKind is the list of the pod's spec that a container belongs to.
type ContainerKind int

// The lists of a pod's spec.
const (
	AppContainer ContainerKind = iota
	InitContainer
	EphemeralContainer
)

// observeEnded reports the containers that have ended between two statuses. Ends are
// identified by the containers' ids, because an end stays in the status as the
// last state after the container was restarted.
func (m *Manager) observeEnded(before, after *core.PodStatus) {
	if m.options.Ended == nil {
		return
	}
	for kind, lists := range map[ContainerKind][2][]core.ContainerStatus{
		AppContainer:       {before.ContainerStatuses, after.ContainerStatuses},
		InitContainer:      {before.InitContainerStatuses, after.InitContainerStatuses},
		EphemeralContainer: {before.EphemeralContainerStatuses, after.EphemeralContainerStatuses},
	} {
		known := sets.New("") // what has no id never ran
		for i := range lists[0] {
			for _, how := range ends(&lists[0][i]) {
				known.Insert(how.ContainerID)
			}
		}
		for i := range lists[1] {
			for _, how := range ends(&lists[1][i]) {
				if !known.Has(how.ContainerID) {
					m.options.Ended(kind, how)
				}
			}
		}
	}
}

// inAPI is the pod's status in the API, as last seen.
func (m *Manager) inAPI(pod *core.Pod) *core.PodStatus {
	if object := m.options.Pods.APIPod(pod); object != nil {
		return &object.Status
	}
	return &pod.Status
}

// ends are the ends in a container's status.
func ends(status *core.ContainerStatus) (all []*corev1.ContainerStateTerminated) {
	for _, how := range []*corev1.ContainerStateTerminated{status.LastTerminationState.Terminated, status.State.Terminated} {
		if how != nil {
			all = append(all, how)
		}
	}
	return all
}
