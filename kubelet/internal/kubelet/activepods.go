package kubelet

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// activePods are the pods that hold resources of the node, with what they were granted, while
// new pods are admitted one after the other: to look at all pods of the node for each of
// thousands takes minutes, in which nothing else is handled.
type activePods struct {
	kubelet *Kubelet
	granted map[types.UID]*core.Pod
	at      time.Time // when all were looked at
	changes int       // of what pods are granted, until then
	reread  bool      // the node
}

// activeFor is how long those that end meanwhile may still count.
const activeFor = time.Second

// beside are all of them but one, which the pod manager has already: what workers grant from
// now on leaves room for it.
func (a *activePods) beside(pod *core.Pod) []*core.Pod {
	changes := a.kubelet.allocations.Changes()
	if now := a.kubelet.clock.Now(); a.granted == nil || changes != a.changes || now.Sub(a.at) >= activeFor {
		a.granted, a.at, a.changes = map[types.UID]*core.Pod{}, now, changes
		for _, one := range a.kubelet.pods.Pods() {
			a.update(one)
		}
	}
	others := make([]*core.Pod, 0, len(a.granted))
	for uid, other := range a.granted {
		if uid != pod.UID {
			others = append(others, other)
		}
	}
	return others
}

// rereadNode is the Kubelet's, once for all pods that have come together: the answer is newer than
// they are. They are judged in one round of the sync loop, which would count as stuck if an API
// server that does not answer were waited for again for each of very many.
func (a *activePods) rereadNode() bool {
	if a.reread {
		return false
	}
	a.reread = true
	return a.kubelet.rereadNode()
}

// update takes a pod in, or out if it is not active.
func (a *activePods) update(pod *core.Pod) {
	switch {
	case a.granted == nil: // nobody has asked yet
	case a.kubelet.active(pod):
		a.granted[pod.UID] = a.kubelet.allocations.Allocated(pod)
	default:
		delete(a.granted, pod.UID)
	}
}
