package framework

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// EventResource is what kind of thing an event happened to.
type EventResource int

const (
	// NodeEvent happens to a node.
	NodeEvent EventResource = iota
	// AssignedPodEvent happens to a pod that has a node.
	AssignedPodEvent
	// PodEvent happens to the waiting pod itself.
	PodEvent
	// ClaimEvent happens to a persistent volume claim, VolumeEvent to a volume,
	// ClassEvent to a storage class; NodeVolumesEvent to what a node's drivers can
	// mount (CSINode), CapacityEvent to what drivers can still make, AttachmentEvent to
	// a volume that is attached to a node.
	ClaimEvent
	VolumeEvent
	ClassEvent
	NodeVolumesEvent
	CapacityEvent
	AttachmentEvent
)

var resourceNames = [...]string{
	"Node", "AssignedPod", "TargetPod", "PersistentVolumeClaim", "PersistentVolume",
	"storage.k8s.io/StorageClass", "storage.k8s.io/CSINode", "storage.k8s.io/CSIStorageCapacity", "storage.k8s.io/VolumeAttachment",
}

// ActionType says what happened; types can be joined with |.
type ActionType uint32

const (
	Add ActionType = 1 << iota
	Delete
	UpdateNodeAllocatable
	UpdateNodeLabel
	UpdateNodeTaint // the unschedulable mark included
	UpdateNodeCondition
	UpdateNodeAnnotation
	UpdateNodeDeclaredFeatures
	UpdatePodLabel
	UpdatePodScaleDown // requests became smaller
	UpdatePodToleration
	UpdatePodSchedulingGates
	UpdatePodOther // any other change of the pod

	// Update is a change of anything but a node or a pod.
	Update = UpdatePodOther

	// AllActionTypes are all of them.
	AllActionTypes = UpdatePodOther<<1 - 1
)

var actionNames = [...]string{
	"Add", "Delete", "UpdateNodeAllocatable", "UpdateNodeLabel", "UpdateNodeTaint", "UpdateNodeCondition", "UpdateNodeAnnotation",
	"UpdateNodeDeclaredFeature", "UpdatePodLabel", "UpdatePodScaleDown", "UpdatePodToleration", "UpdatePodSchedulingGatesEliminated", "Update",
}

// ClusterEvent is a change in the cluster that may let a waiting pod be scheduled.
// Old and New are nil where there is none.
type ClusterEvent struct {
	Resource   EventResource
	ActionType ActionType

	OldNode, NewNode *core.Node
	OldPod, NewPod   *core.Pod
	// Nominated says that OldPod was not on the node, but had room kept for it: it
	// was in the way only of pods that come after it.
	Nominated bool
	// Claim is the persistent volume claim as it is now.
	Claim *corev1.PersistentVolumeClaim
}

// Label names the event in metrics and logs.
func (e ClusterEvent) Label() string {
	label := resourceNames[e.Resource]
	for i, name := range actionNames {
		if e.ActionType&(1<<i) != 0 {
			return label + name
		}
	}
	return label
}

// ClusterEventWithHint is one kind of event that may undo a plugin's rejection.
type ClusterEventWithHint struct {
	Resource   EventResource
	ActionType ActionType
	// QueueingHintFn looks closer: it reports whether this event may make this pod pass. Nil
	// means that it always may. It is called under the queue's lock and must be
	// quick. When in doubt it returns true, because a wrong false leaves the pod
	// waiting until the flush of leftovers.
	QueueingHintFn func(pod *PodInfo, event ClusterEvent) bool
}

// IsAbout reports whether the event is of this kind.
func (i ClusterEventWithHint) IsAbout(event ClusterEvent) bool {
	return i.Resource == event.Resource && i.ActionType&event.ActionType != 0
}

// Covers reports whether the event is of this kind and passes the hint.
func (i ClusterEventWithHint) Covers(pod *PodInfo, event ClusterEvent) bool {
	return i.IsAbout(event) && (i.QueueingHintFn == nil || i.QueueingHintFn(pod, event))
}
