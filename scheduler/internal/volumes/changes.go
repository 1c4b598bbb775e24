package volumes

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// These say which changes of an object may help a pod that waits. Drivers write some of
// these objects every minute, and most changes help nobody.

// topologiesChanged: all else that plugins look at in a class can't change.
func topologiesChanged(before, after *storagev1.StorageClass) bool {
	return !apiequality.Semantic.DeepEqual(before.AllowedTopologies, after.AllowedTopologies)
}

// limitsGrew: a driver came, or can mount more volumes than before.
func limitsGrew(before, after *storagev1.CSINode) bool {
	limit := func(driver *storagev1.CSINodeDriver) *int32 {
		if driver.Allocatable == nil {
			return nil
		}
		return driver.Allocatable.Count
	}
	return slices.ContainsFunc(after.Spec.Drivers, func(driver storagev1.CSINodeDriver) bool {
		i := slices.IndexFunc(before.Spec.Drivers, func(old storagev1.CSINodeDriver) bool { return old.Name == driver.Name })
		if i < 0 {
			return true
		}
		was, is := limit(&before.Spec.Drivers[i]), limit(&driver)
		return was != nil && (is == nil || *is > *was)
	})
}

// capacityUncounted: what a driver can still make is no longer looked at.
func capacityUncounted(before, after *storagev1.CSIDriver) bool {
	return countsCapacity(before) && !countsCapacity(after)
}

func countsCapacity(driver *storagev1.CSIDriver) bool {
	return driver.Spec.StorageCapacity != nil && *driver.Spec.StorageCapacity
}

// capacityGrew: a larger volume can be made than before.
func capacityGrew(before, after *storagev1.CSIStorageCapacity) bool {
	was, is := largest(before), largest(after)
	return is != nil && (was == nil || is.Cmp(*was) > 0)
}

// largest is the size of the largest volume that can be made, nil if that is unknown.
func largest(capacity *storagev1.CSIStorageCapacity) *resource.Quantity {
	if capacity.MaximumVolumeSize != nil {
		return capacity.MaximumVolumeSize
	}
	return capacity.Capacity
}
