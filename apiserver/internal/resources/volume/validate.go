package volume

import (
	"path"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/resources/check"
)

const notPositive = "must be greater than zero"

func positive(q resource.Quantity, at *field.Path) field.ErrorList {
	if q.Sign() <= 0 {
		return field.ErrorList{field.Invalid(at, q.String(), notPositive)}
	}
	return nil
}

func validateVolume(s *corev1.PersistentVolumeSpec) field.ErrorList {
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(specPath.Child("accessModes"), ""))
	}
	errs = append(errs, validateModes(s.AccessModes, specPath.Child("accessModes"))...)
	capacity := specPath.Child("capacity")
	if len(s.Capacity) == 0 {
		errs = append(errs, field.Required(capacity, ""))
	}
	storage, ok := s.Capacity[corev1.ResourceStorage]
	if !ok || len(s.Capacity) > 1 {
		errs = append(errs, field.NotSupported(capacity, s.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	if ok {
		errs = append(errs, positive(storage, capacity.Key(string(corev1.ResourceStorage)))...)
	}
	errs = append(errs, check.Supported(s.PersistentVolumeReclaimPolicy, specPath.Child("persistentVolumeReclaimPolicy"),
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, validateSource(s)...)
	if s.StorageClassName != "" {
		errs = append(errs, subdomain(s.StorageClassName, specPath.Child("storageClassName"))...)
	}
	return append(errs, validateMode(s.VolumeMode, specPath.Child("volumeMode"))...)
}

func subdomain(name string, at *field.Path) field.ErrorList {
	return check.Messages(at, name, check.NameIsSubdomain(name, false))
}

func validateModes(modes []corev1.PersistentVolumeAccessMode, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, mode := range modes {
		errs = append(errs, check.Supported(mode, at, accessModes...)...)
	}
	if len(modes) > 1 && slices.Contains(modes, corev1.ReadWriteOncePod) {
		errs = append(errs, field.Forbidden(at, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

func validateMode(mode *corev1.PersistentVolumeMode, at *field.Path) field.ErrorList {
	if mode == nil {
		return nil
	}
	return check.Supported(*mode, at, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
}

// validateSource checks that a volume has one source, and what the sources
// that stand for a single node must say.
func validateSource(s *corev1.PersistentVolumeSpec) field.ErrorList {
	var errs field.ErrorList
	sources := reflect.ValueOf(s.PersistentVolumeSource)
	found := 0
	for i := range sources.NumField() {
		if sources.Field(i).IsNil() {
			continue
		}
		if found++; found > 1 {
			name := sources.Type().Field(i).Name
			errs = append(errs, field.Forbidden(specPath.Child(jsonName(name)), "may not specify more than 1 volume type"))
		}
	}
	if found == 0 {
		errs = append(errs, field.Required(specPath, "must specify a volume type"))
	}
	if h := s.HostPath; h != nil {
		if h.Path == "" {
			errs = append(errs, field.Required(specPath.Child("hostPath", "path"), ""))
		}
		if path.Clean(h.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
			errs = append(errs, field.Forbidden(specPath.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"))
		}
	}
	if l := s.Local; l != nil {
		if l.Path == "" {
			errs = append(errs, field.Required(specPath.Child("local", "path"), ""))
		}
		if s.NodeAffinity == nil {
			errs = append(errs, field.Required(specPath.Child("nodeAffinity"), "Local volume requires node affinity"))
		}
	}
	if c := s.CSI; c != nil {
		if c.Driver == "" {
			errs = append(errs, field.Required(specPath.Child("csi", "driver"), ""))
		}
		if c.VolumeHandle == "" {
			errs = append(errs, field.Required(specPath.Child("csi", "volumeHandle"), ""))
		}
	}
	if n := s.NFS; n != nil {
		if n.Server == "" {
			errs = append(errs, field.Required(specPath.Child("nfs", "server"), ""))
		}
		if n.Path == "" {
			errs = append(errs, field.Required(specPath.Child("nfs", "path"), ""))
		}
	}
	return errs
}

// jsonName is the name of a source's field in JSON.
func jsonName(name string) string {
	f, ok := reflect.TypeFor[corev1.PersistentVolumeSource]().FieldByName(name)
	if !ok {
		return name
	}
	tag := f.Tag.Get("json")
	for i := range tag {
		if tag[i] == ',' {
			return tag[:i]
		}
	}
	return tag
}

func sameVolume(now, old *corev1.PersistentVolumeSpec) field.ErrorList {
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(withoutSecrets(now), withoutSecrets(old)) {
		errs = append(errs, field.Forbidden(specPath.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation"))
	}
	errs = append(errs, check.Same(now.VolumeMode, old.VolumeMode, specPath.Child("volumeMode"))...)
	if old.NodeAffinity != nil {
		errs = append(errs, check.Same(now.NodeAffinity, old.NodeAffinity, specPath.Child("nodeAffinity"))...)
	}
	return errs
}

// withoutSecrets is a source without the secrets by which a CSI driver expands
// it, which may be added later.
func withoutSecrets(s *corev1.PersistentVolumeSpec) corev1.PersistentVolumeSource {
	source := *s.PersistentVolumeSource.DeepCopy()
	if source.CSI != nil {
		source.CSI.ControllerExpandSecretRef, source.CSI.NodeExpandSecretRef = nil, nil
	}
	return source
}

// ValidateClaimSpec checks what a claim, or the template of one, asks for.
func ValidateClaimSpec(s *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	if s.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(s.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	errs = append(errs, validateModes(s.AccessModes, at.Child("accessModes"))...)
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if asked, ok := s.Resources.Requests[corev1.ResourceStorage]; ok {
		errs = append(errs, positive(asked, storage)...)
	} else {
		errs = append(errs, field.Required(storage, ""))
	}
	if name := ptr.Deref(s.StorageClassName, ""); name != "" {
		errs = append(errs, subdomain(name, at.Child("storageClassName"))...)
	}
	errs = append(errs, validateMode(s.VolumeMode, at.Child("volumeMode"))...)
	if source := s.DataSource; source != nil {
		errs = append(errs, validateDataSource(source.APIGroup, source.Kind, source.Name, at.Child("dataSource"))...)
	}
	if source := s.DataSourceRef; source != nil {
		errs = append(errs, validateDataSource(source.APIGroup, source.Kind, source.Name, at.Child("dataSourceRef"))...)
	}
	if name := ptr.Deref(s.VolumeAttributesClassName, ""); name != "" {
		errs = append(errs, subdomain(name, at.Child("volumeAttributesClassName"))...)
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
	return errs
}

// sameClaim checks that an update of a claim changes nothing but its volume,
// which is bound once, and, once it is bound, how much it asks for.
func sameClaim(now, old *corev1.PersistentVolumeClaim) field.ErrorList {
	was := old.Spec.DeepCopy()
	if was.VolumeName == "" {
		was.VolumeName = now.Spec.VolumeName
	}
	if was.StorageClassName == nil && old.Status.Phase != corev1.ClaimBound {
		was.StorageClassName = now.Spec.StorageClassName // the default class, set later
	}
	if old.Status.Phase == corev1.ClaimBound {
		was.Resources.Requests = now.Spec.Resources.Requests
	}
	was.VolumeAttributesClassName = now.Spec.VolumeAttributesClassName
	if !equality.Semantic.DeepEqual(*was, now.Spec) {
		return field.ErrorList{field.Forbidden(specPath,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")}
	}
	before, asked := old.Spec.Resources.Requests[corev1.ResourceStorage], now.Spec.Resources.Requests[corev1.ResourceStorage]
	has := old.Status.Capacity[corev1.ResourceStorage]
	if asked.Cmp(before) < 0 && asked.Cmp(has) <= 0 {
		return field.ErrorList{field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity")}
	}
	return nil
}
