package framework

import (
	"testing"

	"kctl/proto/core"
)

// Events are named in metrics as by kube-scheduler 1.37.
func TestEventLabels(t *testing.T) {
	for want, event := range map[string]ClusterEvent{
		"NodeUpdateNodeDeclaredFeature":               {Resource: NodeEvent, ActionType: UpdateNodeDeclaredFeatures},
		"NodeUpdateNodeCondition":                     {Resource: NodeEvent, ActionType: UpdateNodeCondition},
		"NodeUpdateNodeAnnotation":                    {Resource: NodeEvent, ActionType: UpdateNodeAnnotation | UpdateNodeDeclaredFeatures},
		"AssignedPodDelete":                           {Resource: AssignedPodEvent, ActionType: Delete},
		"TargetPodUpdatePodSchedulingGatesEliminated": {Resource: PodEvent, ActionType: UpdatePodSchedulingGates | UpdatePodOther},
		"PersistentVolumeClaimUpdate":                 {Resource: ClaimEvent, ActionType: Update},
		"storage.k8s.io/StorageClassAdd":              {Resource: ClassEvent, ActionType: Add},
		"storage.k8s.io/CSINodeAdd":                   {Resource: NodeVolumesEvent, ActionType: Add},
		"storage.k8s.io/CSIStorageCapacityUpdate":     {Resource: CapacityEvent, ActionType: Update},
		"storage.k8s.io/VolumeAttachmentDelete":       {Resource: AttachmentEvent, ActionType: Delete},
	} {
		if got := event.Label(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// An extender, or a plugin of others, may have refused a pod for its annotations.
func TestAnAnnotationIsAChange(t *testing.T) {
	before, after := &core.Pod{}, &core.Pod{}
	after.Annotations = map[string]string{"example.com/device": "any"}
	if got := PodActions(before, after); got != UpdatePodOther {
		t.Errorf("%b, want %b", got, UpdatePodOther)
	}
}
