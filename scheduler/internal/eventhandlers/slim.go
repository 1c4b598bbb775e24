package eventhandlers

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/proto/watch"
)

// pods decodes pods for next, without what the scheduler never looks at, which
// is most of a pod's bytes. Whole pods are for plugins and extenders that may
// look at anything.
type pods struct {
	*watch.Store[*core.Pod]
	whole  bool
	shared *shared
}

// Decode implements watch.Decoder.
func (p pods) Decode(data []byte) (*core.Pod, error) {
	if !p.whole {
		return decodePod(data, p.shared)
	}
	pod := &core.Pod{}
	err := core.Decode(data, pod)
	pod.ManagedFields = nil
	return pod, err
}

// nodes does the same for nodes.
type nodes struct {
	*watch.Store[*core.Node]
	whole  bool
	shared *shared
	// images receives a node's images; the receiver keeps each name once.
	images func(nodeName string, images []corev1.ContainerImage)
}

// Decode implements watch.Decoder.
func (n nodes) Decode(data []byte) (*core.Node, error) {
	if !n.whole {
		return decodeNode(data, n.shared)
	}
	node := &core.Node{}
	err := core.Decode(data, node)
	node.ManagedFields = nil
	return node, err
}

func (n nodes) Replace(all []*core.Node) {
	for _, node := range all {
		// For a node that can't be decoded, the list returns the old version, whose
		// images were taken before.
		if kept, _ := n.Get(node.Namespace, node.Name); kept != node {
			n.takeImages(node)
		}
	}
	n.Store.Replace(all)
}

func (n nodes) Apply(t watch.Type, node *core.Node) {
	if t != watch.Deleted {
		n.takeImages(node)
	}
	n.Store.Apply(t, node)
}

// takeImages comes after the end of another node of the same name, with which that one's
// images are forgotten.
func (n nodes) takeImages(node *core.Node) {
	if old, known := n.Get(node.Namespace, node.Name); known && old.UID != node.UID {
		n.Store.Apply(watch.Deleted, old)
	}
	n.images(node.Name, node.Status.Images)
	if !n.whole {
		node.Status.Images = nil
	}
}
