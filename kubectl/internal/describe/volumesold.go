package describe

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Kinds of volumes that Kubernetes itself mounted once, or that only its cloud providers
// and drivers know. Pods and persistent volumes may still name them.

// What these kinds are, in kubectl's words.
const (
	aboutISCSI     = "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)"
	aboutGlusterfs = "Glusterfs (a Glusterfs mount on the host that shares a pod's lifetime)"
	aboutRBD       = "RBD (a Rados Block Device mount on the host that shares a pod's lifetime)"
	aboutCinder    = "Cinder (a Persistent Disk resource in OpenStack)"
	aboutScaleIO   = "ScaleIO (a persistent volume backed by a block device in ScaleIO)"
	aboutCephFS    = "CephFS (a CephFS mount on the host that shares a pod's lifetime)"
	aboutStorageOS = "StorageOS (a StorageOS Persistent Disk resource)"
	aboutAzureFile = "AzureFile (an Azure File Service mount on the host and bind mount to the pod)"
	aboutFlex      = "FlexVolume (a generic volume resource that is provisioned/attached using an exec based plugin)"
)

// kind writes what a volume is, and its fields: labels and values by turns.
func (p *page) kind(about string, fields ...any) bool {
	p.line("Type", "%s", about)
	for i := 0; i < len(fields); i += 2 {
		p.text("%s\t%v", fields[i], fields[i+1])
	}
	return true
}

// oldVolume writes a pod's volume of one of these kinds.
func (p *page) oldVolume(v *corev1.VolumeSource) bool {
	switch {
	case v.ISCSI != nil:
		s := v.ISCSI
		return p.kind(aboutISCSI, "TargetPortal:", s.TargetPortal, "IQN:", s.IQN, "Lun:", s.Lun, "ISCSIInterface", s.ISCSIInterface, "FSType:", s.FSType,
			"ReadOnly:", s.ReadOnly, "Portals:", s.Portals, "DiscoveryCHAPAuth:", s.DiscoveryCHAPAuth, "SessionCHAPAuth:", s.SessionCHAPAuth,
			"SecretRef:", s.SecretRef, "InitiatorName:", ptr.Deref(s.InitiatorName, "<none>"))
	case v.Glusterfs != nil:
		return p.kind(aboutGlusterfs, "EndpointsName:", v.Glusterfs.EndpointsName, "Path:", v.Glusterfs.Path, "ReadOnly:", v.Glusterfs.ReadOnly)
	case v.RBD != nil:
		s := v.RBD
		return p.kind(aboutRBD, "CephMonitors:", s.CephMonitors, "RBDImage:", s.RBDImage, "FSType:", s.FSType, "RBDPool:", s.RBDPool,
			"RadosUser:", s.RadosUser, "Keyring:", s.Keyring, "SecretRef:", s.SecretRef, "ReadOnly:", s.ReadOnly)
	case v.Cinder != nil:
		s := v.Cinder
		return p.kind(aboutCinder, "VolumeID:", s.VolumeID, "FSType:", s.FSType, "ReadOnly:", s.ReadOnly, "SecretRef:", s.SecretRef)
	case v.ScaleIO != nil:
		s := v.ScaleIO
		return p.kind(aboutScaleIO, "Gateway:", s.Gateway, "System:", s.System, "Protection Domain:", s.ProtectionDomain, "Storage Pool:", s.StoragePool,
			"Storage Mode:", s.StorageMode, "VolumeName:", s.VolumeName, "FSType:", s.FSType, "ReadOnly:", s.ReadOnly)
	case v.CephFS != nil:
		s := v.CephFS
		return p.kind(aboutCephFS, "Monitors:", s.Monitors, "Path:", s.Path, "User:", s.User, "SecretFile:", s.SecretFile, "SecretRef:", s.SecretRef, "ReadOnly:", s.ReadOnly)
	case v.StorageOS != nil:
		s := v.StorageOS
		return p.kind(aboutStorageOS, "VolumeName:", s.VolumeName, "VolumeNamespace:", s.VolumeNamespace, "FSType:", s.FSType, "ReadOnly:", s.ReadOnly)
	case v.AzureFile != nil:
		return p.kind(aboutAzureFile, "SecretName:", v.AzureFile.SecretName, "ShareName:", v.AzureFile.ShareName, "ReadOnly:", v.AzureFile.ReadOnly)
	case v.FlexVolume != nil:
		s := v.FlexVolume
		return p.kind(aboutFlex, "Driver:", s.Driver, "FSType:", s.FSType, "SecretRef:", s.SecretRef, "ReadOnly:", s.ReadOnly, "Options:", s.Options)
	case v.GitRepo != nil:
		return p.kind("GitRepo (a volume that is pulled from git when the pod is created)", "Repository:", v.GitRepo.Repository, "Revision:", v.GitRepo.Revision)
	}
	return p.cloudVolume(v)
}

// cloudVolume writes a volume of a kind that is the same for pods and persistent volumes.
func (p *page) cloudVolume(v *corev1.VolumeSource) bool {
	switch {
	case v.GCEPersistentDisk != nil:
		s := v.GCEPersistentDisk
		return p.kind("GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
			"PDName:", s.PDName, "FSType:", s.FSType, "Partition:", s.Partition, "ReadOnly:", s.ReadOnly)
	case v.AWSElasticBlockStore != nil:
		s := v.AWSElasticBlockStore
		return p.kind("AWSElasticBlockStore (a Persistent Disk resource in AWS)",
			"VolumeID:", s.VolumeID, "FSType:", s.FSType, "Partition:", s.Partition, "ReadOnly:", s.ReadOnly)
	case v.Quobyte != nil:
		return p.kind("Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
			"Registry:", v.Quobyte.Registry, "Volume:", v.Quobyte.Volume, "ReadOnly:", v.Quobyte.ReadOnly)
	case v.AzureDisk != nil:
		s := v.AzureDisk
		return p.kind("AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)",
			"DiskName:", s.DiskName, "DiskURI:", s.DataDiskURI, "Kind: ", ptr.Deref(s.Kind, ""), "FSType:", ptr.Deref(s.FSType, ""),
			"CachingMode:", ptr.Deref(s.CachingMode, ""), "ReadOnly:", ptr.Deref(s.ReadOnly, false))
	case v.VsphereVolume != nil:
		s := v.VsphereVolume
		return p.kind("vSphereVolume (a Persistent Disk resource in vSphere)",
			"VolumePath:", s.VolumePath, "FSType:", s.FSType, "StoragePolicyName:", s.StoragePolicyName)
	case v.PhotonPersistentDisk != nil:
		return p.kind("PhotonPersistentDisk (a Persistent Disk resource in photon platform)",
			"PdID:", v.PhotonPersistentDisk.PdID, "FSType:", v.PhotonPersistentDisk.FSType)
	case v.PortworxVolume != nil:
		return p.kind("PortworxVolume (a Portworx Volume resource)", "VolumeID:", v.PortworxVolume.VolumeID)
	case v.FC != nil:
		lun := "<none>"
		if v.FC.Lun != nil {
			lun = strconv.Itoa(int(*v.FC.Lun))
		}
		return p.kind("FC (a Fibre Channel disk)",
			"TargetWWNs:", strings.Join(v.FC.TargetWWNs, ", "), "LUN:", lun, "FSType:", v.FC.FSType, "ReadOnly:", v.FC.ReadOnly)
	case v.Flocker != nil:
		return p.kind("Flocker (a Flocker volume mounted by the Flocker agent)",
			"DatasetName:", v.Flocker.DatasetName, "DatasetUUID:", v.Flocker.DatasetUUID)
	}
	return false
}

// oldSource writes a persistent volume of one of these kinds. Secrets have namespaces here.
func (p *page) oldSource(v *corev1.PersistentVolumeSource) bool {
	switch {
	case v.ISCSI != nil:
		s := v.ISCSI
		return p.kind(aboutISCSI, "TargetPortal:", s.TargetPortal, "IQN:", s.IQN, "Lun:", s.Lun, "ISCSIInterface", s.ISCSIInterface, "FSType:", s.FSType,
			"ReadOnly:", s.ReadOnly, "Portals:", s.Portals, "DiscoveryCHAPAuth:", s.DiscoveryCHAPAuth, "SessionCHAPAuth:", s.SessionCHAPAuth,
			"SecretRef:", s.SecretRef, "InitiatorName:", ptr.Deref(s.InitiatorName, "<none>"))
	case v.Glusterfs != nil:
		s := v.Glusterfs
		return p.kind(aboutGlusterfs, "EndpointsName:", s.EndpointsName, "EndpointsNamespace:", ptr.Deref(s.EndpointsNamespace, "<unset>"), "Path:", s.Path, "ReadOnly:", s.ReadOnly)
	case v.RBD != nil:
		s := v.RBD
		return p.kind(aboutRBD, "CephMonitors:", s.CephMonitors, "RBDImage:", s.RBDImage, "FSType:", s.FSType, "RBDPool:", s.RBDPool,
			"RadosUser:", s.RadosUser, "Keyring:", s.Keyring, "SecretRef:", s.SecretRef, "ReadOnly:", s.ReadOnly)
	case v.Cinder != nil:
		s := v.Cinder
		return p.kind(aboutCinder, "VolumeID:", s.VolumeID, "FSType:", s.FSType, "ReadOnly:", s.ReadOnly, "SecretRef:", s.SecretRef)
	case v.ScaleIO != nil:
		s, secret := v.ScaleIO, ptr.Deref(v.ScaleIO.SecretRef, corev1.SecretReference{})
		return p.kind(aboutScaleIO, "Gateway:", s.Gateway, "System:", s.System, "Protection Domain:", s.ProtectionDomain, "Storage Pool:", s.StoragePool,
			"Storage Mode:", s.StorageMode, "VolumeName:", s.VolumeName, "SecretName:", secret.Name, "SecretNamespace:", secret.Namespace, "FSType:", s.FSType, "ReadOnly:", s.ReadOnly)
	case v.CephFS != nil:
		s := v.CephFS
		return p.kind(aboutCephFS, "Monitors:", s.Monitors, "Path:", s.Path, "User:", s.User, "SecretFile:", s.SecretFile, "SecretRef:", s.SecretRef, "ReadOnly:", s.ReadOnly)
	case v.StorageOS != nil:
		s := v.StorageOS
		return p.kind(aboutStorageOS, "VolumeName:", s.VolumeName, "VolumeNamespace:", s.VolumeNamespace, "FSType:", s.FSType, "ReadOnly:", s.ReadOnly)
	case v.AzureFile != nil:
		s := v.AzureFile
		return p.kind(aboutAzureFile, "SecretName:", s.SecretName, "SecretNamespace:", ptr.Deref(s.SecretNamespace, ""), "ShareName:", s.ShareName, "ReadOnly:", s.ReadOnly)
	case v.FlexVolume != nil:
		s := v.FlexVolume
		return p.kind(aboutFlex, "Driver:", s.Driver, "FSType:", s.FSType, "SecretRef:", s.SecretRef, "ReadOnly:", s.ReadOnly, "Options:", s.Options)
	}
	return p.cloudVolume(&corev1.VolumeSource{
		GCEPersistentDisk: v.GCEPersistentDisk, AWSElasticBlockStore: v.AWSElasticBlockStore, Quobyte: v.Quobyte, AzureDisk: v.AzureDisk,
		VsphereVolume: v.VsphereVolume, PhotonPersistentDisk: v.PhotonPersistentDisk, PortworxVolume: v.PortworxVolume, FC: v.FC, Flocker: v.Flocker,
	})
}
