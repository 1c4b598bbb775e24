package noderestriction

import corev1 "k8s.io/api/core/v1"

// migratedDrivers are the CSI drivers that serve the in-tree kinds of volumes
// (Kubernetes docs, "CSI migration").
var migratedDrivers = []struct {
	driver     string
	inPod      func(v *corev1.VolumeSource) bool
	persistent func(v *corev1.PersistentVolumeSource) bool
}{
	{"ebs.csi.aws.com", func(v *corev1.VolumeSource) bool { return v.AWSElasticBlockStore != nil },
		func(v *corev1.PersistentVolumeSource) bool { return v.AWSElasticBlockStore != nil }},
	{"disk.csi.azure.com", func(v *corev1.VolumeSource) bool { return v.AzureDisk != nil },
		func(v *corev1.PersistentVolumeSource) bool { return v.AzureDisk != nil }},
	{"file.csi.azure.com", func(v *corev1.VolumeSource) bool { return v.AzureFile != nil },
		func(v *corev1.PersistentVolumeSource) bool { return v.AzureFile != nil }},
	{"cinder.csi.openstack.org", func(v *corev1.VolumeSource) bool { return v.Cinder != nil },
		func(v *corev1.PersistentVolumeSource) bool { return v.Cinder != nil }},
	{"pd.csi.storage.gke.io", func(v *corev1.VolumeSource) bool { return v.GCEPersistentDisk != nil },
		func(v *corev1.PersistentVolumeSource) bool { return v.GCEPersistentDisk != nil }},
	{"pxd.portworx.com", func(v *corev1.VolumeSource) bool { return v.PortworxVolume != nil },
		func(v *corev1.PersistentVolumeSource) bool { return v.PortworxVolume != nil }},
	{"csi.vsphere.vmware.com", func(v *corev1.VolumeSource) bool { return v.VsphereVolume != nil },
		func(v *corev1.PersistentVolumeSource) bool { return v.VsphereVolume != nil }},
}

// driverInPod is the driver of a volume in a pod's spec, "" for none.
func driverInPod(v *corev1.VolumeSource) string {
	for _, m := range migratedDrivers {
		if m.inPod(v) {
			return m.driver
		}
	}
	return ""
}

// driverOfPersistent is the driver of a persistent volume, "" for none.
func driverOfPersistent(v *corev1.PersistentVolumeSource) string {
	if v.CSI != nil {
		return v.CSI.Driver
	}
	for _, m := range migratedDrivers {
		if m.persistent(v) {
			return m.driver
		}
	}
	return ""
}
