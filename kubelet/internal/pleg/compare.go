package pleg

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
)

// change is a pod that has changed.
type change struct {
	events []Event
	err    error // from asking for its status
}

// compare returns what happened to a pod between two lists; nil stands for a
// pod that did not, or does not, exist.
func compare(uid types.UID, before, after *runtimestate.RunningPod) []Event {
	old, now := states(before), states(after)
	var events []Event
	add := func(t EventType, id runtimestate.ContainerID) {
		events = append(events, Event{UID: uid, Type: t, ContainerID: id.ID})
	}
	for id, state := range now {
		was, existed := old[id]
		if existed && was == state {
			continue
		}
		switch state {
		case runtimestate.StateRunning:
			add(ContainerStarted, id)
		case runtimestate.StateExited:
			add(ContainerDied, id)
		case runtimestate.StateUnknown:
			add(ContainerChanged, id)
		case runtimestate.StateCreated:
			// Its worker is about to start it, and will report that. After a restart of
			// the kubelet there is no such worker, so its first appearance counts.
			if before == nil {
				add(ContainerChanged, id)
			}
		}
	}
	for id, was := range old {
		if _, ok := now[id]; ok {
			continue
		}
		if was == runtimestate.StateRunning {
			add(ContainerDied, id)
		}
		add(ContainerRemoved, id)
	}
	return events
}

// withoutKnownStarts are those of the events that are news given the pod's status: none, if
// all of them are starts that its worker has already reported. Looking at the pod
// again because of its own worker's actions would take the runtime's time while it
// starts the next one.
func withoutKnownStarts(events []Event, status *runtimestate.PodStatus) []Event {
	for _, e := range events {
		if e.Type != ContainerStarted || !runs(status, e.ContainerID) {
			return events
		}
	}
	return nil
}

func runs(status *runtimestate.PodStatus, id string) bool {
	return slices.ContainsFunc(status.Containers, func(c *runtimestate.ContainerStatus) bool {
		return c.ID.ID == id && c.State == runtimestate.StateRunning
	}) || slices.ContainsFunc(status.Sandboxes, func(s *runtimestate.SandboxStatus) bool { return s.ID == id && s.Ready })
}

func states(pod *runtimestate.RunningPod) map[runtimestate.ContainerID]runtimestate.ContainerState {
	if pod == nil {
		return nil
	}
	states := make(map[runtimestate.ContainerID]runtimestate.ContainerState, len(pod.Containers)+len(pod.Sandboxes))
	for _, c := range pod.Containers {
		states[c.ID] = c.State
	}
	for _, s := range pod.Sandboxes {
		states[s.ID] = s.State
	}
	return states
}
