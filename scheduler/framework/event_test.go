package framework

import "testing"

// Events are named in metrics as by kube-scheduler 1.37.
func TestEventLabels(t *testing.T) {
	for want, event := range map[string]ClusterEvent{
		"NodeUpdateNodeDeclaredFeature":               {Resource: NodeEvent, ActionType: UpdateNodeDeclaredFeatures},
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
