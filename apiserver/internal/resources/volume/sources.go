package volume

import (
	"path"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// source is the spec that names a volume's source, and the source's path in it.
type source struct {
	*corev1.PersistentVolumeSpec
	spec, at *field.Path // of the volume and of its source
}

// sourceChecks checks what each kind of source must have, by the name of its
// field. Kinds that nodes no longer mount are checked only for the fields that
// identify the volume.
var sourceChecks = map[string]func(s source) field.ErrorList{
	"GCEPersistentDisk": func(s source) field.ErrorList {
		at := specPath.Child("persistentDisk") // so upstream calls it
		return append(check.Required(at, "pdName", s.GCEPersistentDisk.PDName), check.Partition(s.GCEPersistentDisk.Partition, at)...)
	},
	"AWSElasticBlockStore": func(s source) field.ErrorList {
		return append(check.Required(s.at, "volumeID", s.AWSElasticBlockStore.VolumeID),
			check.Partition(s.AWSElasticBlockStore.Partition, s.at)...)
	},
	"HostPath": checkHostPath,
	"Local":    checkLocal,
	"NFS": func(s source) field.ErrorList {
		errs := check.Required(s.at, "server", s.NFS.Server, "path", s.NFS.Path)
		if !path.IsAbs(s.NFS.Path) {
			errs = append(errs, field.Invalid(s.at.Child("path"), s.NFS.Path, "must be an absolute path"))
		}
		return errs
	},
	"ISCSI": checkISCSI,
	"CSI":   checkCSI,
	"Glusterfs": func(s source) field.ErrorList {
		errs := check.Required(s.at, "endpoints", s.Glusterfs.EndpointsName, "path", s.Glusterfs.Path)
		if namespace := s.Glusterfs.EndpointsNamespace; namespace != nil && *namespace == "" {
			errs = append(errs, field.Invalid(s.at.Child("endpointsNamespace"), "",
				"if the endpointnamespace is set, it must be a valid namespace name"))
		} else if namespace != nil {
			errs = append(errs, check.Label(*namespace, s.at.Child("endpointsNamespace"))...)
		}
		return errs
	},
	"RBD": func(s source) field.ErrorList {
		return append(check.RequiredList(s.at, "monitors", s.RBD.CephMonitors), check.Required(s.at, "image", s.RBD.RBDImage)...)
	},
	"CephFS": func(s source) field.ErrorList { return check.RequiredList(s.at, "monitors", s.CephFS.Monitors) },
	"Cinder": func(s source) field.ErrorList {
		errs := check.Required(s.at, "volumeID", s.Cinder.VolumeID)
		if ref := s.Cinder.SecretRef; ref != nil {
			errs = append(errs, check.Required(s.at.Child("secretRef"), "name", ref.Name, "namespace", ref.Namespace)...)
		}
		return errs
	},
	"FlexVolume": func(s source) field.ErrorList {
		return check.FlexVolume(s.FlexVolume.Driver, s.FlexVolume.Options, s.at)
	},
	"FC":      func(s source) field.ErrorList { return check.FibreChannel(s.FC, s.at) },
	"Flocker": func(s source) field.ErrorList { return check.Flocker(s.Flocker, s.at) },
	"AzureFile": func(s source) field.ErrorList {
		errs := check.Required(s.at, "secretName", s.AzureFile.SecretName, "shareName", s.AzureFile.ShareName)
		if namespace := s.AzureFile.SecretNamespace; namespace != nil {
			errs = append(errs, check.Required(s.at, "secretNamespace", *namespace)...)
		}
		return errs
	},
	"AzureDisk":            func(s source) field.ErrorList { return check.AzureDisk(s.AzureDisk, s.at) },
	"Quobyte":              func(s source) field.ErrorList { return check.Quobyte(s.Quobyte, s.at) },
	"VsphereVolume":        func(s source) field.ErrorList { return check.Required(s.at, "volumePath", s.VsphereVolume.VolumePath) },
	"PhotonPersistentDisk": func(s source) field.ErrorList { return check.Required(s.at, "pdID", s.PhotonPersistentDisk.PdID) },
	"PortworxVolume":       func(s source) field.ErrorList { return check.Required(s.at, "volumeID", s.PortworxVolume.VolumeID) },
	"StorageOS": func(s source) field.ErrorList {
		errs := check.StorageOS(s.StorageOS.VolumeName, s.StorageOS.VolumeNamespace, s.at)
		if ref := s.StorageOS.SecretRef; ref != nil {
			errs = append(errs, check.Required(s.at.Child("secretRef"), "name", ref.Name, "namespace", ref.Namespace)...)
		}
		return errs
	},
	"ScaleIO": func(s source) field.ErrorList {
		return check.Required(s.at, "gateway", s.ScaleIO.Gateway, "system", s.ScaleIO.System, "volumeName", s.ScaleIO.VolumeName)
	},
}

// sourceOrder is the order in which upstream checks the sources.
var sourceOrder = []string{
	"HostPath", "GCEPersistentDisk", "AWSElasticBlockStore", "Glusterfs", "Flocker", "NFS", "RBD", "Quobyte", "CephFS", "ISCSI", "Cinder",
	"FC", "FlexVolume",
	"AzureFile", "VsphereVolume", "PhotonPersistentDisk", "PortworxVolume", "AzureDisk", "ScaleIO", "Local", "StorageOS", "CSI",
}

// validateSource checks that a volume has exactly one source, and that the
// source is complete.
func validateSource(s *corev1.PersistentVolumeSpec, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	sources := reflect.ValueOf(s.PersistentVolumeSource)
	found := 0
	for _, kind := range sourceOrder {
		if sources.FieldByName(kind).IsNil() {
			continue
		}
		of, _ := sources.Type().FieldByName(kind)
		name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
		if found++; found > 1 && kind != "FlexVolume" { // upstream does not refuse a second source if it is a FlexVolume
			if kind == "CephFS" {
				name = "cephFS" // upstream's spelling
			}
			errs = append(errs, field.Forbidden(spec.Child(name), "may not specify more than 1 volume type"))
			continue
		}
		if whole, ok := sourceChecks[kind]; ok {
			errs = append(errs, whole(source{s, spec, spec.Child(name)})...)
		}
	}
	if found == 0 {
		errs = append(errs, field.Required(spec, "must specify a volume type"))
	}
	return errs
}

var hostPathTypes = []corev1.HostPathType{
	corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
	corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket,
}

func checkHostPath(s source) field.ErrorList {
	h := s.HostPath
	errs := check.Required(s.at, "path", h.Path)
	errs = append(errs, check.NoBacksteps(h.Path, s.at.Child("path"))...)
	if h.Type != nil {
		errs = append(errs, check.Supported(*h.Type, s.at.Child("type"), hostPathTypes...)...)
	}
	if path.Clean(h.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(specPath.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"))
	}
	return errs
}

func checkLocal(s source) field.ErrorList {
	errs := check.Required(s.at, "path", s.Local.Path)
	errs = append(errs, check.NoBacksteps(s.Local.Path, s.at.Child("path"))...)
	if s.NodeAffinity == nil {
		errs = append(errs, field.Required(s.spec.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	return errs
}

func checkISCSI(s source) field.ErrorList {
	i := s.ISCSI
	errs := check.ISCSI{
		Portal: i.TargetPortal, Name: i.IQN, LUN: i.Lun, Chap: i.DiscoveryCHAPAuth || i.SessionCHAPAuth,
		Secret: i.SecretRef != nil, Initiator: i.InitiatorName,
	}.Check(s.at)
	if ref := i.SecretRef; ref != nil {
		errs = append(errs, check.Required(s.at.Child("secretRef"), "name", ref.Name)...)
	}
	return errs
}

func checkCSI(s source) field.ErrorList {
	c := s.CSI
	errs := check.DriverName(c.Driver, s.at.Child("driver"))
	errs = append(errs, check.Required(s.at, "volumeHandle", c.VolumeHandle)...)
	for _, of := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", c.ControllerPublishSecretRef}, {"controllerExpandSecretRef", c.ControllerExpandSecretRef},
		{"nodePublishSecretRef", c.NodePublishSecretRef}, {"nodeExpandSecretRef", c.NodeExpandSecretRef}, // nodeStageSecretRef is not validated
	} {
		if of.ref == nil {
			continue
		}
		at := s.at.Child(of.name)
		errs = append(errs, check.Required(at, "name", of.ref.Name, "namespace", of.ref.Namespace)...)
		if of.ref.Name != "" {
			errs = append(errs, check.Subdomain(of.ref.Name, at.Child("name"))...)
		}
		if of.ref.Namespace != "" {
			errs = append(errs, check.Messages(at.Child("namespace"), of.ref.Namespace, check.NameIsLabel(of.ref.Namespace, false))...)
		}
	}
	return errs
}
