package volume

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

var (
	Volumes = core.PersistentVolumes
	Claims  = core.PersistentVolumeClaims
)

const (
	unset       = "<unset>"
	terminating = "Terminating"
)

var specPath = field.NewPath("spec")

// Strategy is the strategy of persistent volumes.
func Strategy(clock clock.PassiveClock) registry.Strategy[*corev1.PersistentVolume] {
	spec, status := corev1.PersistentVolumeSpec{}.SwaggerDoc(), corev1.PersistentVolumeStatus{}.SwaggerDoc()
	return registry.WithStatus(registry.Strategy[*corev1.PersistentVolume]{
		Resource: Volumes, Singular: "persistentvolume", ShortNames: []string{"pv"},
		Default: defaultVolume,
		Create: registry.CreateStrategy[*corev1.PersistentVolume]{
			Prepare: func(_ context.Context, v *corev1.PersistentVolume) {
				v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending, LastPhaseTransitionTime: new(metav1.NewTime(clock.Now()))}
			},
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, v *corev1.PersistentVolume) field.ErrorList { return validateVolume(v) },
			Warnings:     func(_ context.Context, v *corev1.PersistentVolume) []string { return volumeWarnings(v) },
		},
		Update: registry.UpdateStrategy[*corev1.PersistentVolume]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, v, old *corev1.PersistentVolume) field.ErrorList {
				return append(validateVolume(v), sameVolume(&v.Spec, &old.Spec)...)
			},
			Warnings: func(_ context.Context, v, _ *corev1.PersistentVolume) []string { return volumeWarnings(v) },
		},
		Status: &registry.UpdateStrategy[*corev1.PersistentVolume]{Prepare: func(_ context.Context, v, old *corev1.PersistentVolume) {
			given, was := v.Status.LastPhaseTransitionTime, old.Status.LastPhaseTransitionTime
			switch {
			case v.Status.Phase != old.Status.Phase && (given == nil || given.Equal(was)):
				v.Status.LastPhaseTransitionTime = new(metav1.NewTime(clock.Now()))
			case given == nil:
				v.Status.LastPhaseTransitionTime = was
			}
		}},
		Delete: registry.DeleteStrategy[*corev1.PersistentVolume]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*corev1.PersistentVolume]{
			Columns: cell.Describe(cell.Columns(status,
				"Name", "Capacity", "Access Modes", "Reclaim Policy", "Status=phase", "Claim", "StorageClass", "VolumeAttributesClass",
				"Reason=reason", "Age", "VolumeMode*",
			), map[string]string{
				"Capacity":              spec["capacity"],
				"Access Modes":          spec["accessModes"],
				"Reclaim Policy":        spec["persistentVolumeReclaimPolicy"],
				"Claim":                 spec["claimRef"],
				"VolumeMode":            spec["volumeMode"],
				"StorageClass":          "StorageClass of the pv",
				"VolumeAttributesClass": "VolumeAttributesClass of the pv",
			}),
			Row: func(v *corev1.PersistentVolume) []any { return volumeRow(v, clock.Now()) },
		},
	})
}

func volumeRow(v *corev1.PersistentVolume, now time.Time) []any {
	phase, claim := string(v.Status.Phase), ""
	if v.DeletionTimestamp != nil {
		phase = terminating
	}
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	capacity := v.Spec.Capacity[corev1.ResourceStorage]
	return []any{
		v.Name, capacity.String(), modes(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy), phase, claim,
		class(v.Annotations, v.Spec.StorageClassName), orUnset(v.Spec.VolumeAttributesClassName), v.Status.Reason,
		cell.Age(now, v.CreationTimestamp), orUnset(v.Spec.VolumeMode),
	}
}

func defaultVolume(v *corev1.PersistentVolume) {
	check.RoundUpQuantities(v.Spec.Capacity)
	if v.Status.Phase == "" {
		v.Status.Phase = corev1.VolumePending
	}
	if v.Spec.PersistentVolumeReclaimPolicy == "" {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	if v.Spec.VolumeMode == nil {
		v.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
	}
	s := &v.Spec.PersistentVolumeSource
	if s.HostPath != nil && s.HostPath.Type == nil {
		s.HostPath.Type = new(corev1.HostPathUnset)
	}
	if s.ISCSI != nil && s.ISCSI.ISCSIInterface == "" {
		s.ISCSI.ISCSIInterface = "default"
	}
	if s.AzureDisk != nil {
		defaultAzureDisk(s.AzureDisk)
	}
	if s.RBD != nil {
		for to, value := range map[*string]string{&s.RBD.RBDPool: "rbd", &s.RBD.RadosUser: "admin", &s.RBD.Keyring: "/etc/ceph/keyring"} {
			if *to == "" {
				*to = value
			}
		}
	}
	if s.ScaleIO != nil {
		for to, value := range map[*string]string{&s.ScaleIO.StorageMode: "ThinProvisioned", &s.ScaleIO.FSType: "xfs"} {
			if *to == "" {
				*to = value
			}
		}
	}
}

func defaultAzureDisk(s *corev1.AzureDiskVolumeSource) {
	if s.CachingMode == nil {
		s.CachingMode = new(corev1.AzureDataDiskCachingReadWrite)
	}
	if s.Kind == nil {
		s.Kind = new(corev1.AzureSharedBlobDisk)
	}
	if s.FSType == nil {
		s.FSType = new("ext4")
	}
	if s.ReadOnly == nil {
		s.ReadOnly = new(false)
	}
}

// modes writes access modes as tables show them, each once.
func modes(all []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"}} {
		if slices.Contains(all, m.mode) {
			out = append(out, m.short)
		}
	}
	return strings.Join(out, ",")
}

// class is the storage class. The annotation is older than the field, and wins.
func class(annotations map[string]string, name string) string {
	if old, ok := annotations[corev1.BetaStorageClassAnnotation]; ok {
		return old
	}
	return name
}

func orUnset[T ~string](s *T) string {
	if s == nil {
		return unset
	}
	return string(*s)
}
