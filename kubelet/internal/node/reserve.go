package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PressureReserve is what must be free before the node counts as short of it,
// and so is not for pods to have.
func PressureReserve(machine Machine) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceMemory:           *resource.NewQuantity(memoryLow, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(diskLow*float64(machine.EphemeralStorage)), resource.BinarySI),
	}
}
