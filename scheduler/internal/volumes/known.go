package volumes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/framework"
)

// NewKnown returns a Volumes that knows the objects and watches nothing. Only tests call
// it.
func NewKnown(objects ...core.Object) *Volumes {
	v := New(clock.RealClock{}, func(framework.ClusterEvent) {})
	close(v.known)
	for _, object := range objects {
		v.Set(object)
	}
	return v
}

// Set adds an object to v. Only tests call it.
func (v *Volumes) Set(object core.Object) {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		v.claims.Apply(watch.Modified, o)
	case *corev1.PersistentVolume:
		v.volumes.Apply(watch.Modified, o)
	case *storagev1.StorageClass:
		v.classes.Apply(watch.Modified, o)
	case *storagev1.CSINode:
		v.nodes.Apply(watch.Modified, o)
	case *storagev1.CSIDriver:
		v.drivers.Apply(watch.Modified, o)
	case *storagev1.CSIStorageCapacity:
		v.capacities.Apply(watch.Modified, o)
	case *storagev1.VolumeAttachment:
		v.attached.Apply(watch.Modified, o)
	default:
		panic(fmt.Sprintf("%T is not about volumes", object))
	}
}
