package framework

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// NodeInfo is a node together with the pods on it, assumed ones included, and
// their sums. The cache owns and changes it; in a snapshot it stays as it is from
// PreFilter to Permit.
type NodeInfo struct {
	// Node is nil while only pods of a node are known.
	Node *core.Node
	// Generation grows whenever anything about the node changes. No two states of any
	// nodes have the same one. It is zero outside a snapshot.
	Generation int64
	// What most attempts read on hundreds of nodes is kept together, because
	// memory is slow. Unschedulable and Taints are the node's.
	Unschedulable bool
	Taints        []corev1.Taint
	Pods          []*PodInfo
	Allocatable   Resource
	// Requested and Scored are the sums over Pods (see PodInfo).
	Requested Resource
	Scored    Resource

	// WithAffinity are those of Pods that have rules about other pods.
	WithAffinity []*PodInfo
	// HostPorts are the ports in use on the node.
	HostPorts []HostPort
	// Images are those that the node has; the slice is never changed.
	Images []*Image
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
	n.Node, n.Unschedulable, n.Taints = node, node.Spec.Unschedulable, node.Spec.Taints
	n.Allocatable = NewResource(node.Status.Allocatable)
}

// RemoveNode forgets the node, and keeps its pods until they are gone.
func (n *NodeInfo) RemoveNode() {
	n.Node, n.Unschedulable, n.Taints = nil, false, nil
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

// RemovePod counts a pod out again. Where subtraction would not undo the
// addition, everything is recounted.
func (n *NodeInfo) RemovePod(uid types.UID) {
	for i, pod := range n.Pods {
		if pod.Pod.UID != uid {
			continue
		}
		last := len(n.Pods) - 1
		n.Pods[i] = n.Pods[last]
		n.Pods[last] = nil
		n.Pods = n.Pods[:last]
		if pod.Affinity == nil && len(pod.HostPorts) == 0 && !n.Requested.capped() && !n.Scored.capped() {
			n.Requested.subtract(&pod.Requests)
			n.Scored.subtract(&pod.ScoredRequests)
			return
		}
		n.Requested, n.Scored, n.HostPorts, n.WithAffinity = Resource{}, Resource{}, n.HostPorts[:0], n.WithAffinity[:0]
		for _, other := range n.Pods {
			n.count(other)
		}
		return
	}
}

// Snapshot returns a copy that later changes of n do not touch.
func (n *NodeInfo) Snapshot() *NodeInfo {
	c := &NodeInfo{}
	n.CopyTo(c)
	return c
}

// PrefersNoSchedule reports whether the node has a taint of that effect.
func (n *NodeInfo) PrefersNoSchedule() bool {
	return slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
}

// CopyTo makes c such a copy, reusing c's memory. The caller must own c.
func (n *NodeInfo) CopyTo(c *NodeInfo) {
	pods, withAffinity, ports := c.Pods[:0], c.WithAffinity[:0], c.HostPorts[:0]
	*c = *n
	c.Pods = append(pods, n.Pods...)
	c.WithAffinity = append(withAffinity, n.WithAffinity...)
	c.HostPorts = append(ports, n.HostPorts...)
	c.Allocatable = n.Allocatable.clone()
	c.Requested = n.Requested.clone()
	c.Scored = n.Scored.clone()
}
