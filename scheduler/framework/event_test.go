package framework

import "testing"

// Events are named in metrics as by kube-scheduler 1.37.
func TestEventLabels(t *testing.T) {
	for want, event := range map[string]Event{
		"NodeUpdateNodeDeclaredFeature":               {Resource: NodeEvent, Action: UpdateNodeDeclaredFeatures},
		"AssignedPodDelete":                           {Resource: AssignedPodEvent, Action: Delete},
		"TargetPodUpdatePodSchedulingGatesEliminated": {Resource: PodEvent, Action: UpdatePodSchedulingGates | UpdatePodOther},
		"PersistentVolumeClaimUpdate":                 {Resource: ClaimEvent, Action: Update},
		"storage.k8s.io/StorageClassAdd":              {Resource: ClassEvent, Action: Add},
		"storage.k8s.io/CSINodeAdd":                   {Resource: NodeVolumesEvent, Action: Add},
		"storage.k8s.io/CSIStorageCapacityUpdate":     {Resource: CapacityEvent, Action: Update},
		"storage.k8s.io/VolumeAttachmentDelete":       {Resource: AttachmentEvent, Action: Delete},
	} {
		if got := event.Label(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
