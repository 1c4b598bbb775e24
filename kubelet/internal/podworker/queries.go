package podworker

import (
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// State is the public state of a pod's worker.
type State struct {
	Phase Phase
	// Pod is the newest version that the worker got; nil if the pod is known only
	// from the runtime.
	Pod *core.Pod
}

// States are where all pods are that have a worker.
func (w *Workers) States() map[types.UID]State {
	w.mu.Lock()
	defer w.mu.Unlock()
	states := make(map[types.UID]State, len(w.entries))
	for uid, e := range w.entries {
		state := State{Phase: e.phase}
		if last := e.latest(); last != nil {
			state.Pod = last.Pod
		}
		states[uid] = state
	}
	return states
}

// Phase is where the pod is in its life.
func (w *Workers) Phase(uid types.UID) Phase {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.entries[uid]; ok {
		return e.phase
	}
	return Unknown
}

// TerminationRequested says that the pod must not be started, or not again.
func (w *Workers) TerminationRequested(uid types.UID) bool { return w.Phase(uid) >= Terminating }

// EndsForNode says that the node has asked for the pod's end, and said with which status. The pod's
// worker may be busy, and the status not show that yet.
func (w *Workers) EndsForNode(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.entries[uid]
	return ok && e.status != nil
}

// CouldHaveRunningContainers says that containers of the pod may run now or
// be started later.
func (w *Workers) CouldHaveRunningContainers(uid types.UID) bool {
	switch w.Phase(uid) {
	case Waiting, Syncing, Terminating:
		return true
	default:
		return false
	}
}

// NameHeld says that a pod of that name was started and has not ended yet.
func (w *Workers) NameHeld(namespace, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.names[types.NamespacedName{Namespace: namespace, Name: name}]) > 0
}

// Finished says that nothing is left to do for the pod, though its source may
// still have it.
func (w *Workers) Finished(uid types.UID) bool { return w.Phase(uid) == Finished }

// SyncKnownPods compares the workers with the pods that the sources have. Of
// the pods that no source has, it forgets the finished ones and makes the
// others end. It returns those that are left.
func (w *Workers) SyncKnownPods(desired map[types.UID]bool) (left map[types.UID]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left = make(map[types.UID]bool, len(w.entries))
	for uid, e := range w.entries {
		orphan := !desired[uid]
		if orphan && e.phase == Finished {
			w.forget(e)
			continue
		}
		if orphan && e.phase < Terminating {
			if last := e.latest(); last != nil {
				w.update(&Update{Type: Kill, Pod: last.Pod, MirrorPod: last.MirrorPod, Kill: &KillOptions{Removed: true}})
			}
		}
		left[uid] = true
	}
	return left
}
