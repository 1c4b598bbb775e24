package check

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
)

// Bounds of volumes that are disks.
const (
	maxLUN       = 255
	maxPartition = 255
	maxTenant    = 64
)

func lun(number int32, at *field.Path) field.ErrorList {
	if number < 0 || number > maxLUN {
		return field.ErrorList{field.Invalid(at, number, validation.InclusiveRangeError(0, maxLUN))}
	}
	return nil
}

// Partition checks the partition of a disk; none means the whole disk.
func Partition(number int32, at *field.Path) field.ErrorList {
	if number < 0 || number > maxPartition {
		return field.ErrorList{field.Invalid(at.Child("partition"), number, validation.InclusiveRangeError(1, maxPartition))}
	}
	return nil
}

// FibreChannel checks a disk, which is identified in one of two ways.
func FibreChannel(s *corev1.FCVolumeSource, at *field.Path) field.ErrorList {
	names := at.Child("targetWWNs")
	switch {
	case len(s.TargetWWNs) == 0 && len(s.WWIDs) == 0:
		return field.ErrorList{field.Required(names, "must specify either targetWWNs or wwids, but not both")}
	case len(s.TargetWWNs) > 0 && len(s.WWIDs) > 0:
		return field.ErrorList{field.Invalid(names, s.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously")}
	case len(s.TargetWWNs) > 0 && s.Lun == nil:
		return field.ErrorList{field.Required(at.Child("lun"), "lun is required if targetWWNs is specified")}
	case len(s.TargetWWNs) > 0:
		return lun(*s.Lun, at.Child("lun"))
	}
	return nil
}

// Flocker checks a dataset that has one name.
func Flocker(s *corev1.FlockerVolumeSource, at *field.Path) field.ErrorList {
	switch {
	case s.DatasetName == "" && s.DatasetUUID == "":
		return field.ErrorList{field.Required(at, "one of datasetName and datasetUUID is required")}
	case s.DatasetName != "" && s.DatasetUUID != "":
		return field.ErrorList{field.Invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously")}
	case strings.Contains(s.DatasetName, "/"):
		return field.ErrorList{field.Invalid(at.Child("datasetName"), s.DatasetName, "must not contain '/'")}
	}
	return nil
}

// Quobyte checks a volume and its registries.
func Quobyte(s *corev1.QuobyteVolumeSource, at *field.Path) field.ErrorList {
	const says = "must be a host:port pair or multiple pairs separated by commas"
	var errs field.ErrorList
	if s.Registry == "" {
		errs = append(errs, field.Required(at.Child("registry"), says))
	} else if len(s.Tenant) > maxTenant {
		errs = append(errs, field.Required(at.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
	} else {
		for pair := range strings.SplitSeq(s.Registry, ",") {
			if !strings.Contains(pair, ":") {
				errs = append(errs, field.Invalid(at.Child("registry"), s.Registry, says))
			}
		}
	}
	return append(errs, Required(at, "volume", s.Volume)...)
}

// The forms of Azure disks' addresses.
const (
	azureBlob    = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	azureManaged = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
)

// AzureDisk checks that a disk's address fits its kind.
func AzureDisk(s *corev1.AzureDiskVolumeSource, at *field.Path) field.ErrorList {
	errs := Required(at, "diskName", s.DiskName, "diskURI", s.DataDiskURI)
	if s.CachingMode != nil {
		errs = append(errs, Supported(*s.CachingMode, at.Child("cachingMode"),
			corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)...)
	}
	managed := ptr.Deref(s.Kind, "") == corev1.AzureManagedDisk
	if s.Kind != nil {
		errs = append(errs, Supported(*s.Kind, at.Child("kind"),
			corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk)...)
	}
	switch {
	case managed && !strings.HasPrefix(s.DataDiskURI, "/subscriptions/"):
		errs = append(errs, field.NotSupported(at.Child("diskURI"), s.DataDiskURI, []string{azureManaged}))
	case !managed && !strings.HasPrefix(s.DataDiskURI, "https://"):
		errs = append(errs, field.NotSupported(at.Child("diskURI"), s.DataDiskURI, []string{azureBlob}))
	}
	return errs
}

// qualifiedISCSI is the form of iSCSI names (RFC 3720, 3980).
var qualifiedISCSI = regexp.MustCompile(`^(iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$|eui\.[[:alnum:]]{16}$|naa\.[[:alnum:]]{32}$)`)

// ISCSI are the fields common to iSCSI disks of pods and of persistent volumes.
type ISCSI struct {
	Portal, Name string
	LUN          int32
	Chap, Secret bool
	Initiator    *string
	// WithPrefixes: messages list the allowed prefixes of names.
	WithPrefixes bool
}

// Check checks the disk's identification.
func (s ISCSI) Check(at *field.Path) field.ErrorList {
	errs := Required(at, "targetPortal", s.Portal, "iqn", s.Name)
	if s.Name != "" {
		errs = append(errs, s.name(s.Name, at.Child("iqn"))...)
	}
	errs = append(errs, lun(s.LUN, at.Child("lun"))...)
	if s.Chap && !s.Secret {
		errs = append(errs, field.Required(at.Child("secretRef"), ""))
	}
	if s.Initiator != nil {
		errs = append(errs, s.name(*s.Initiator, at.Child("initiatorname"))...)
	}
	return errs
}

// ISCSIInterface checks the name of the interface that a node makes for a disk
// whose initiator is given, from the volume's name and the portal. The error is
// about value, at the path.
func ISCSIInterface(volume, portal string, initiator *string, value string, at *field.Path) field.ErrorList {
	if initiator == nil || len(volume+":"+portal) <= 64 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value,
		"Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.")}
}

func (s ISCSI) name(name string, at *field.Path) field.ErrorList {
	known := strings.HasPrefix(name, "iqn") || strings.HasPrefix(name, "eui") || strings.HasPrefix(name, "naa")
	switch {
	case s.WithPrefixes && !known:
		return field.ErrorList{field.Invalid(at, name, "must be valid format starting with iqn, eui, or naa")}
	case !qualifiedISCSI.MatchString(name):
		return field.ErrorList{field.Invalid(at, name, "must be valid format")}
	}
	return nil
}

// StorageOS checks the names of a volume.
func StorageOS(volume, namespace string, at *field.Path) field.ErrorList {
	errs := Required(at, "volumeName", volume)
	if volume != "" {
		errs = append(errs, Label(volume, at.Child("volumeName"))...)
	}
	if namespace != "" {
		errs = append(errs, Label(namespace, at.Child("volumeNamespace"))...)
	}
	return errs
}

// FlexVolume refuses options that only kubelets may set.
func FlexVolume(driver string, options map[string]string, at *field.Path) field.ErrorList {
	errs := Required(at, "driver", driver)
	for key := range options {
		domain, _, _ := strings.Cut(key, "/")
		if domain = "." + domain; strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			errs = append(errs, field.Invalid(at.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return errs
}
