package pod

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

const (
	fileModeMessage  = "must be a number between 0 and 0777 (octal), both inclusive"
	oneVolumeMessage = "may not specify more than 1 volume type"
)

var hostPathTypes = sets.New(corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory,
	corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)

// validateVolumes returns the valid volumes by name, to which mounts may refer.
func validateVolumes(volumes []corev1.Volume, at *field.Path) (map[string]*corev1.VolumeSource, field.ErrorList) {
	var errs field.ErrorList
	good := make(map[string]*corev1.VolumeSource, len(volumes))
	names := sets.New[string]()
	for i := range volumes {
		v, path := &volumes[i], at.Index(i)
		found := validateSource(v, path)
		if s := v.ISCSI; s != nil {
			found = append(found, check.ISCSIInterface(v.Name, s.TargetPortal, s.InitiatorName, v.Name, path.Child("name"))...)
		}
		found = append(found, uniqueLabel(v.Name, path.Child("name"), names)...)
		if len(found) == 0 {
			good[v.Name] = &v.VolumeSource
		}
		errs = append(errs, found...)
	}
	return good, errs
}

// validateSource checks that there is exactly one source and that it is complete.
func validateSource(v *corev1.Volume, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	found := 0
	for i := range sourceChecks {
		kind := &sourceChecks[i]
		if !kind.set(&v.VolumeSource) {
			continue
		}
		if found++; found > 1 {
			name := kind.name
			if other, has := tooManyNames[name]; has {
				name = other
			}
			errs = append(errs, field.Forbidden(at.Child(name), oneVolumeMessage))
			continue
		}
		if kind.check != nil {
			errs = append(errs, kind.check(&v.VolumeSource, at.Child(kind.name))...)
		}
	}
	if found == 0 {
		errs = append(errs, field.Required(at, "must specify a volume type"))
	}
	return errs
}

// tooManyNames are upstream's names for superfluous sources, if they differ from the
// API's.
var tooManyNames = map[string]string{"persistentDisk": "gcePersistentDisk", "cephfs": "cephFS", "downwardAPI": "downwarAPI"}

type sourceCheck struct {
	name  string
	set   func(s *corev1.VolumeSource) bool
	check func(s *corev1.VolumeSource, at *field.Path) field.ErrorList
}

// sourceChecks lists every kind of volume in the order of upstream's checks.
var sourceChecks = []sourceCheck{
	{"emptyDir", func(s *corev1.VolumeSource) bool { return s.EmptyDir != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList { return validateEmptyDir(s.EmptyDir, at) }},
	{"hostPath", func(s *corev1.VolumeSource) bool { return s.HostPath != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList { return validateHostPath(s.HostPath, at) }},
	{"gitRepo", func(s *corev1.VolumeSource) bool { return s.GitRepo != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		return append(check.Required(at, "repository", s.GitRepo.Repository), descendingPath(s.GitRepo.Directory, at.Child("directory"))...)
	}},
	{"persistentDisk", func(s *corev1.VolumeSource) bool { return s.GCEPersistentDisk != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return append(check.Required(at, "pdName", s.GCEPersistentDisk.PDName), check.Partition(s.GCEPersistentDisk.Partition, at)...)
		}},
	{"awsElasticBlockStore", func(s *corev1.VolumeSource) bool { return s.AWSElasticBlockStore != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return append(check.Required(at, "volumeID", s.AWSElasticBlockStore.VolumeID), check.Partition(s.AWSElasticBlockStore.Partition, at)...)
		}},
	{"secret", func(s *corev1.VolumeSource) bool { return s.Secret != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		errs := check.Required(at, "secretName", s.Secret.SecretName)
		return append(errs, validateFiles(s.Secret.DefaultMode, s.Secret.DefaultUser, s.Secret.Items, at)...)
	}},
	{"nfs", func(s *corev1.VolumeSource) bool { return s.NFS != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList { return validateNFS(s.NFS, at) }},
	{"iscsi", func(s *corev1.VolumeSource) bool { return s.ISCSI != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList { return validateISCSI(s.ISCSI, at) }},
	{"glusterfs", func(s *corev1.VolumeSource) bool { return s.Glusterfs != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return check.Required(at, "endpoints", s.Glusterfs.EndpointsName, "path", s.Glusterfs.Path)
		}},
	{"flocker", func(s *corev1.VolumeSource) bool { return s.Flocker != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList { return check.Flocker(s.Flocker, at) }},
	{"persistentVolumeClaim", func(s *corev1.VolumeSource) bool { return s.PersistentVolumeClaim != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return check.Required(at, "claimName", s.PersistentVolumeClaim.ClaimName)
		}},
	{"rbd", func(s *corev1.VolumeSource) bool { return s.RBD != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		return append(check.RequiredList(at, "monitors", s.RBD.CephMonitors), check.Required(at, "image", s.RBD.RBDImage)...)
	}},
	{"cinder", func(s *corev1.VolumeSource) bool { return s.Cinder != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		errs := check.Required(at, "volumeID", s.Cinder.VolumeID)
		if ref := s.Cinder.SecretRef; ref != nil {
			errs = append(errs, check.Required(at.Child("secretRef"), "name", ref.Name)...)
		}
		return errs
	}},
	{"cephfs", func(s *corev1.VolumeSource) bool { return s.CephFS != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		return check.RequiredList(at, "monitors", s.CephFS.Monitors)
	}},
	{"quobyte", func(s *corev1.VolumeSource) bool { return s.Quobyte != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		return check.Quobyte(s.Quobyte, at)
	}},
	{"downwardAPI", func(s *corev1.VolumeSource) bool { return s.DownwardAPI != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			errs := fileMode(s.DownwardAPI.DefaultMode, at.Child("defaultMode"))
			errs = append(errs, owner(s.DownwardAPI.DefaultUser, at.Child("defaultUser"))...)
			return append(errs, validateDownward(s.DownwardAPI.Items, at)...)
		}},
	{"fc", func(s *corev1.VolumeSource) bool { return s.FC != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList { return check.FibreChannel(s.FC, at) }},
	{"flexVolume", func(s *corev1.VolumeSource) bool { return s.FlexVolume != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return check.FlexVolume(s.FlexVolume.Driver, s.FlexVolume.Options, at)
		}},
	{"configMap", func(s *corev1.VolumeSource) bool { return s.ConfigMap != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			errs := check.Required(at, "name", s.ConfigMap.Name)
			return append(errs, validateFiles(s.ConfigMap.DefaultMode, s.ConfigMap.DefaultUser, s.ConfigMap.Items, at)...)
		}},
	{"azureFile", func(s *corev1.VolumeSource) bool { return s.AzureFile != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return check.Required(at, "secretName", s.AzureFile.SecretName, "shareName", s.AzureFile.ShareName)
		}},
	{"vsphereVolume", func(s *corev1.VolumeSource) bool { return s.VsphereVolume != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return check.Required(at, "volumePath", s.VsphereVolume.VolumePath)
		}},
	{"photonPersistentDisk", func(s *corev1.VolumeSource) bool { return s.PhotonPersistentDisk != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return check.Required(at, "pdID", s.PhotonPersistentDisk.PdID)
		}},
	{"portworxVolume", func(s *corev1.VolumeSource) bool { return s.PortworxVolume != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return check.Required(at, "volumeID", s.PortworxVolume.VolumeID)
		}},
	{"azureDisk", func(s *corev1.VolumeSource) bool { return s.AzureDisk != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return check.AzureDisk(s.AzureDisk, at)
		}},
	{"storageos", func(s *corev1.VolumeSource) bool { return s.StorageOS != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			errs := check.StorageOS(s.StorageOS.VolumeName, s.StorageOS.VolumeNamespace, at)
			if ref := s.StorageOS.SecretRef; ref != nil {
				errs = append(errs, check.Required(at.Child("secretRef"), "name", ref.Name)...)
			}
			return errs
		}},
	{"projected", func(s *corev1.VolumeSource) bool { return s.Projected != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return validateProjected(s.Projected, at)
		}},
	{"scaleIO", func(s *corev1.VolumeSource) bool { return s.ScaleIO != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		return check.Required(at, "gateway", s.ScaleIO.Gateway, "system", s.ScaleIO.System, "volumeName", s.ScaleIO.VolumeName)
	}},
	{"csi", func(s *corev1.VolumeSource) bool { return s.CSI != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		errs := check.DriverName(s.CSI.Driver, at.Child("driver"))
		if ref := s.CSI.NodePublishSecretRef; ref != nil && ref.Name == "" {
			errs = append(errs, field.Required(at.Child("nodePublishSecretRef", "name"), ""))
		} else if ref != nil {
			errs = append(errs, check.Subdomain(ref.Name, at.Child("name"))...) // so upstream calls it
		}
		return errs
	}},
	{"ephemeral", func(s *corev1.VolumeSource) bool { return s.Ephemeral != nil },
		func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
			return validateClaimTemplate(s.Ephemeral.VolumeClaimTemplate, at.Child("volumeClaimTemplate"))
		}},
	{"image", func(s *corev1.VolumeSource) bool { return s.Image != nil }, func(s *corev1.VolumeSource, at *field.Path) field.ErrorList {
		errs := check.Required(at, "reference", s.Image.Reference)
		return append(errs, check.OneOf(s.Image.PullPolicy, at.Child("pullPolicy"), pullPolicies...)...)
	}},
}

func validateEmptyDir(e *corev1.EmptyDirVolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Forbidden(at.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"))
	}
	if e.Mode != nil && (*e.Mode < 0 || *e.Mode > 0o1777) {
		errs = append(errs, field.Invalid(at.Child("mode"), *e.Mode, "must be a number between 0 and 01777 (octal), both inclusive"))
	}
	return errs
}

func validateHostPath(h *corev1.HostPathVolumeSource, at *field.Path) field.ErrorList {
	if h.Path == "" {
		return field.ErrorList{field.Required(at.Child("path"), "")}
	}
	errs := check.NoBacksteps(h.Path, at.Child("path"))
	if h.Type != nil && !hostPathTypes.Has(*h.Type) {
		errs = append(errs, field.NotSupported(at.Child("type"), *h.Type, sets.List(hostPathTypes)))
	}
	return errs
}

func validateNFS(n *corev1.NFSVolumeSource, at *field.Path) field.ErrorList {
	errs := check.Required(at, "server", n.Server, "path", n.Path)
	if !path.IsAbs(n.Path) {
		errs = append(errs, field.Invalid(at.Child("path"), n.Path, "must be an absolute path"))
	}
	return errs
}

func fileMode(mode *int32, at *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(at, *mode, fileModeMessage)}
	}
	return nil
}

// validateFiles validates which keys of a secret or config map become which files.
func validateFiles(defaultMode *int32, defaultUser *int64, items []corev1.KeyToPath, at *field.Path) field.ErrorList {
	errs := append(fileMode(defaultMode, at.Child("defaultMode")), owner(defaultUser, at.Child("defaultUser"))...)
	for i, item := range items {
		path := at.Child("items").Index(i)
		errs = append(errs, check.Required(path, "key", item.Key, "path", item.Path)...)
		errs = append(errs, fileName(item.Path, path.Child("path"))...)
		errs = append(errs, fileMode(item.Mode, path.Child("mode"))...)
		errs = append(errs, owner(item.User, path.Child("user"))...)
	}
	return errs
}

// validateDownward validates downward API files; as in upstream, messages have no item's
// index.
func validateDownward(items []corev1.DownwardAPIVolumeFile, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, item := range items {
		if item.Path == "" {
			errs = append(errs, field.Required(at.Child("path"), ""))
		}
		errs = append(errs, fileName(item.Path, at.Child("path"))...)
		switch {
		case item.FieldRef != nil:
			errs = append(errs, validateFieldRef(item.FieldRef, fileFields, at.Child("fieldRef"))...)
			if item.ResourceFieldRef != nil {
				errs = append(errs, field.Invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
			}
		case item.ResourceFieldRef != nil:
			errs = append(errs, validateResourceRef(item.ResourceFieldRef, true, at.Child("resourceFieldRef"))...)
		default:
			errs = append(errs, field.Required(at, "one of fieldRef and resourceFieldRef is required"))
		}
		errs = append(errs, fileMode(item.Mode, at.Child("mode"))...)
		errs = append(errs, owner(item.User, at.Child("user"))...)
	}
	return errs
}

// fileName validates a file's path in a volume; names that begin with two dots
// are reserved.
func fileName(name string, at *field.Path) field.ErrorList {
	errs := descendingPath(name, at)
	if strings.HasPrefix(name, "..") && !strings.HasPrefix(name, "../") {
		errs = append(errs, field.Invalid(at, name, "must not start with '..'"))
	}
	return errs
}

func descendingPath(name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if path.IsAbs(name) {
		errs = append(errs, field.Invalid(at, name, "must be a relative path"))
	}
	return append(errs, check.NoBacksteps(name, at)...)
}
