// Package claim validates the specs of volume claims: in claims, and in the
// claim templates of pods and stateful sets.
//
// Strategies call it from Validate. Nothing here changes what it checks.
package claim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var accessModes = []corev1.PersistentVolumeAccessMode{
	corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod,
}

// ValidateSpec validates the spec of a claim or of a claim template.
func ValidateSpec(s *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	if s.Selector != nil {
		errs = append(errs, check.LabelSelector(s.Selector, at.Child("selector"))...)
	}
	errs = append(errs, ValidateModes(s.AccessModes, at.Child("accessModes"))...)
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if asked, ok := s.Resources.Requests[corev1.ResourceStorage]; ok {
		errs = append(errs, Positive(asked, storage)...)
	} else {
		errs = append(errs, field.Required(storage, ""))
	}
	if name := ptr.Deref(s.StorageClassName, ""); name != "" {
		errs = append(errs, check.Subdomain(name, at.Child("storageClassName"))...)
	}
	errs = append(errs, ValidateMode(s.VolumeMode, at.Child("volumeMode"))...)
	if source := s.DataSource; source != nil {
		errs = append(errs, validateDataSource(source.APIGroup, source.Kind, source.Name, at.Child("dataSource"))...)
	}
	if source := s.DataSourceRef; source != nil {
		ref := at.Child("dataSourceRef")
		errs = append(errs, validateDataSource(source.APIGroup, source.Kind, source.Name, ref)...)
		if namespace := ptr.Deref(source.Namespace, ""); namespace != "" {
			errs = append(errs, check.Label(namespace, ref.Child("namespace"))...)
		}
	}
	if source, ref := s.DataSource, s.DataSourceRef; source != nil && ref != nil {
		same := Reference(source)
		same.Namespace = ref.Namespace // "" is none
		switch {
		case ptr.Deref(ref.Namespace, "") != "":
			errs = append(errs, field.Invalid(at, struct{}{}, "may not be specified when dataSourceRef.namespace is specified"))
		case !equality.Semantic.DeepEqual(same, ref):
			errs = append(errs, field.Invalid(at, struct{}{}, "must match dataSourceRef"))
		}
	}
	if name := ptr.Deref(s.VolumeAttributesClassName, ""); name != "" {
		errs = append(errs, check.Subdomain(name, at.Child("volumeAttributesClassName"))...)
	}
	return errs
}

func validateDataSource(group *string, kind, name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if kind == "" {
		errs = append(errs, field.Required(at.Child("kind"), ""))
	}
	if ptr.Deref(group, "") == "" && kind != "PersistentVolumeClaim" {
		errs = append(errs, field.Invalid(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	}
	if group := ptr.Deref(group, ""); group != "" {
		errs = append(errs, check.Subdomain(group, at.Child("apiGroup"))...)
	}
	return errs
}

// Reference is a data source in the form of the newer field.
func Reference(source *corev1.TypedLocalObjectReference) *corev1.TypedObjectReference {
	return &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
}

// ValidateModes validates access modes.
func ValidateModes(modes []corev1.PersistentVolumeAccessMode, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, mode := range modes {
		errs = append(errs, check.Supported(mode, at, accessModes...)...)
	}
	if len(modes) > 1 && slices.Contains(modes, corev1.ReadWriteOncePod) {
		errs = append(errs, field.Forbidden(at, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

// ValidateMode validates the volume mode.
func ValidateMode(mode *corev1.PersistentVolumeMode, at *field.Path) field.ErrorList {
	if mode == nil {
		return nil
	}
	return check.Supported(*mode, at, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
}

const notPositive = "must be greater than zero"

// Positive refuses zero and negative amounts.
func Positive(q resource.Quantity, at *field.Path) field.ErrorList {
	if q.Sign() <= 0 {
		return field.ErrorList{field.Invalid(at, q.String(), notPositive)}
	}
	return nil
}
