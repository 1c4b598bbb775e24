package framework

import (
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// NodeInfo is a node together with the pods on it, assumed ones included, and
// their sums. The cache owns and changes it; in a snapshot it never changes.
type NodeInfo struct {
	// Node is nil while only pods of a node are known.
	Node *core.Node
	Pods []*PodInfo
	// WithAffinity are those of Pods that say something about other pods.
	WithAffinity []*PodInfo

	Allocatable Resource
	// Requested and Scored are the sums over Pods (see PodInfo).
	Requested Resource
	Scored    Resource
	// HostPorts are the ports in use on the node.
	HostPorts []HostPort
	// Images are those that the node has; the slice is never changed.
	Images []*Image

	// Generation grows with every change of any node.
	Generation int64
}

// Name is the node's name.
func (n *NodeInfo) Name() string {
	if n.Node == nil {
		return ""
	}
	return n.Node.Name
}

// SetNode replaces the node.
func (n *NodeInfo) SetNode(node *core.Node) {
	n.Node = node
	n.Allocatable = NewResource(node.Status.Allocatable)
}

// RemoveNode forgets the node, and keeps its pods until they are gone.
func (n *NodeInfo) RemoveNode() {
	n.Node = nil
	n.Allocatable = Resource{}
}

// AddPod counts a pod in.
func (n *NodeInfo) AddPod(pod *PodInfo) {
	n.Pods = append(n.Pods, pod)
	n.count(pod)
}

func (n *NodeInfo) count(pod *PodInfo) {
	if pod.Affinity != nil {
		n.WithAffinity = append(n.WithAffinity, pod)
	}
	n.Requested.add(&pod.Requests)
	n.Scored.add(&pod.ScoredRequests)
	n.HostPorts = append(n.HostPorts, pod.HostPorts...)
}

// RemovePod counts a pod out again. The sums are taken anew: subtraction could
// not undo an addition that was held at its largest value.
func (n *NodeInfo) RemovePod(uid types.UID) {
	for i, pod := range n.Pods {
		if pod.Pod.UID != uid {
			continue
		}
		last := len(n.Pods) - 1
		n.Pods[i] = n.Pods[last]
		n.Pods[last] = nil
		n.Pods = n.Pods[:last]
		n.Requested, n.Scored, n.HostPorts, n.WithAffinity = Resource{}, Resource{}, n.HostPorts[:0], nil
		for _, other := range n.Pods {
			n.count(other)
		}
		return
	}
}

// Snapshot returns a copy that later changes of n do not touch.
func (n *NodeInfo) Snapshot() *NodeInfo {
	c := *n
	c.Pods = append([]*PodInfo(nil), n.Pods...)
	c.WithAffinity = append([]*PodInfo(nil), n.WithAffinity...)
	c.HostPorts = append([]HostPort(nil), n.HostPorts...)
	c.Allocatable = n.Allocatable.clone()
	c.Requested = n.Requested.clone()
	c.Scored = n.Scored.clone()
	return &c
}
