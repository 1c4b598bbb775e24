package status

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// ContainerKind is which of a pod's lists a container is of.
type ContainerKind int

// The lists of a pod's spec.
const (
	AppContainer ContainerKind = iota
	InitContainer
	EphemeralContainer
)

// tellEnded tells of the containers that have ended from one status to the next.
// Ends are known by the containers' ids: an end goes on being told as the last one
// once its container was started anew.
func (m *Manager) tellEnded(before, after *core.PodStatus) {
	if m.options.Ended == nil {
		return
	}
	for kind, lists := range map[ContainerKind][2][]core.ContainerStatus{
		AppContainer:       {before.ContainerStatuses, after.ContainerStatuses},
		InitContainer:      {before.InitContainerStatuses, after.InitContainerStatuses},
		EphemeralContainer: {before.EphemeralContainerStatuses, after.EphemeralContainerStatuses},
	} {
		known := map[string]bool{"": true} // what has no id never ran
		for i := range lists[0] {
			for _, how := range ends(&lists[0][i]) {
				known[how.ContainerID] = true
			}
		}
		for i := range lists[1] {
			for _, how := range ends(&lists[1][i]) {
				if !known[how.ContainerID] {
					m.options.Ended(kind, how)
				}
			}
		}
	}
}

// inAPI is the status that the API had of the pod when it was last heard of.
func (m *Manager) inAPI(pod *core.Pod) *core.PodStatus {
	if object := m.options.Pods.APIPod(pod); object != nil {
		return &object.Status
	}
	return &pod.Status
}

// ends are those that a container's status tells of.
func ends(status *core.ContainerStatus) (all []*corev1.ContainerStateTerminated) {
	for _, how := range []*corev1.ContainerStateTerminated{status.LastTerminationState.Terminated, status.State.Terminated} {
		if how != nil {
			all = append(all, how)
		}
	}
	return all
}
