// Package nominator remembers which waiting pods are nominated to which node,
// and which pods are being evicted for them (Kubernetes docs, "Pod Priority and
// Preemption", nominatedNodeName). Until they come, pods of lower priority must
// not get these resources.
//
// The event handlers report the nominations in the API; preemption reports them before
// the API knows; the cycle asks. When a nomination is withdrawn, waiting pods
// are notified. It decides nothing.
package nominator

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Nominator is safe for concurrent use.
type Nominator struct {
	count atomic.Int64 // asked for each node of each attempt; mostly zero

	mu     sync.Mutex
	nodes  map[types.UID]string
	byNode map[string][]*framework.PodInfo
	// leaving are pods that were asked to leave, until the watch shows that they do.
	leaving map[types.UID]struct{}
	// released is called for each pod that no longer needs the room that was kept
	// for it, which is as if it had left it.
	released func(pod *core.Pod)
}

// New returns a Nominator without nominations.
func New() *Nominator {
	return &Nominator{
		nodes:    map[types.UID]string{},
		byNode:   map[string][]*framework.PodInfo{},
		leaving:  map[types.UID]struct{}{},
		released: func(*core.Pod) {},
	}
}

// OnRelease sets the function that is called when a nomination is withdrawn.
// Call it before any pod is nominated.
func (n *Nominator) OnRelease(told func(pod *core.Pod)) { n.released = told }

// Set nominates a pod to a node, and to no other.
func (n *Nominator) Set(pod *core.Pod, node string) {
	n.replace(pod.UID, node, framework.NewPodInfo(pod))
}

// Delete withdraws a nomination: the pod is gone, or has to look elsewhere.
func (n *Nominator) Delete(uid types.UID) { n.Taken(uid, "") }

// Taken ends a nomination, because the pod has room on node by now.
func (n *Nominator) Taken(uid types.UID, node string) {
	if n.count.Load() > 0 {
		n.replace(uid, node, nil)
	}
}

// replace ends a pod's nomination, and makes a new one if a pod is given.
// released is called if the old room is not on the pod's node.
func (n *Nominator) replace(uid types.UID, node string, pod *framework.PodInfo) {
	n.mu.Lock()
	before, old := n.remove(uid)
	if pod != nil {
		n.nodes[uid] = node
		n.byNode[node] = append(n.byNode[node], pod)
	}
	n.count.Store(int64(len(n.nodes)))
	n.mu.Unlock()
	if old != nil && before != node {
		n.released(old.Pod)
	}
}

// remove removes a nomination and returns it.
func (n *Nominator) remove(uid types.UID) (node string, pod *framework.PodInfo) {
	node, known := n.nodes[uid]
	if !known {
		return "", nil
	}
	delete(n.nodes, uid)
	var others []*framework.PodInfo // readers may hold the old slice
	for _, other := range n.byNode[node] {
		if other.Pod.UID == uid {
			pod = other
		} else {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		delete(n.byNode, node)
	} else {
		n.byNode[node] = others
	}
	return node, pod
}

// Of is the node that a pod is nominated to; empty if none.
func (n *Nominator) Of(uid types.UID) string {
	if n.count.Load() == 0 {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.nodes[uid]
}

// On are the pods that are nominated to a node. The slice is not changed
// afterwards.
func (n *Nominator) On(node string) []*framework.PodInfo {
	if n.count.Load() == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byNode[node]
}

// Before are the pods nominated to a node that come before pod: those of its
// priority or a higher one.
func (n *Nominator) Before(pod *framework.PodInfo, node *framework.NodeInfo) []*framework.PodInfo {
	if n.count.Load() == 0 { // mostly so; asked for each node
		return nil
	}
	return n.before(pod, node)
}

func (n *Nominator) before(pod *framework.PodInfo, node *framework.NodeInfo) []*framework.PodInfo {
	var before []*framework.PodInfo
	for _, other := range n.On(node.Name()) {
		if other.Pod.UID != pod.Pod.UID && other.Priority >= pod.Priority {
			before = append(before, other)
		}
	}
	return before
}

// AskToLeave notes that a pod is being asked to go.
func (n *Nominator) AskToLeave(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaving[uid] = struct{}{}
}

// Left notes that a pod goes, is gone, or could not be asked.
func (n *Nominator) Left(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.leaving, uid)
}

// Leaving reports whether a pod was asked to go and has not been seen to.
func (n *Nominator) Leaving(uid types.UID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, leaving := n.leaving[uid]
	return leaving
}
