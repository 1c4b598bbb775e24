package volume

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/claim"
	"kctl/apiserver/internal/resources/pod"
)

// validateQuantity refuses negative amounts.
func validateQuantity(q resource.Quantity, at *field.Path) field.ErrorList {
	if q.Sign() < 0 {
		return field.ErrorList{field.Invalid(at, q.Value(), "must be a valid resource quantity")}
	}
	return nil
}

func validateVolume(v *corev1.PersistentVolume) field.ErrorList {
	s := &v.Spec
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(specPath.Child("accessModes"), ""))
	}
	errs = append(errs, claim.ValidateModes(s.AccessModes, specPath.Child("accessModes"))...)
	capacity := specPath.Child("capacity")
	if len(s.Capacity) == 0 {
		errs = append(errs, field.Required(capacity, ""))
	}
	if _, ok := s.Capacity[corev1.ResourceStorage]; !ok || len(s.Capacity) > 1 {
		errs = append(errs, field.NotSupported(capacity, s.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Capacity)) {
		at := capacity.Key(string(name))
		errs = append(errs, validateQuantity(s.Capacity[name], at)...)
		errs = append(errs, claim.Positive(s.Capacity[name], at)...)
	}
	errs = append(errs, check.Supported(s.PersistentVolumeReclaimPolicy, specPath.Child("persistentVolumeReclaimPolicy"),
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, validateAffinity(s.NodeAffinity, specPath.Child("nodeAffinity", "required"))...)
	errs = append(errs, validateSource(s, specPath)...)
	if i := s.ISCSI; i != nil {
		at := specPath.Child("iscsi", "targetportal") // so upstream calls it
		errs = append(errs, check.ISCSIInterface(v.Name, i.TargetPortal, i.InitiatorName, i.TargetPortal, at)...)
	}
	if s.StorageClassName != "" {
		errs = append(errs, check.Subdomain(s.StorageClassName, specPath.Child("storageClassName"))...)
	}
	errs = append(errs, claim.ValidateMode(s.VolumeMode, specPath.Child("volumeMode"))...)
	return append(errs, validateAttributesClass(s)...)
}

// ValidateInline checks the volume in the spec of a VolumeAttachment: it must
// be of a CSI driver, and without the fields that are for claims.
func ValidateInline(s *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(is bool, name, says string) {
		if is {
			errs = append(errs, field.Forbidden(at.Child(name), says+" in the context of inline volumes"))
		}
	}
	const never = "may not be specified"
	refuse(s.ClaimRef != nil, "claimRef", never)
	refuse(len(s.Capacity) > 0, "capacity", never)
	if s.CSI == nil {
		errs = append(errs, field.Required(at.Child("csi"), "has to be specified in the context of inline volumes"))
	}
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), ""))
	}
	errs = append(errs, claim.ValidateModes(s.AccessModes, at.Child("accessModes"))...)
	refuse(s.PersistentVolumeReclaimPolicy != "" && s.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain,
		"persistentVolumeReclaimPolicy", "may only be Retain")
	refuse(s.NodeAffinity != nil, "nodeAffinity", never)
	errs = append(errs, validateSource(s, at)...)
	refuse(s.StorageClassName != "", "storageClassName", never)
	refuse(ptr.Deref(s.VolumeMode, corev1.PersistentVolumeFilesystem) != corev1.PersistentVolumeFilesystem, "volumeMode",
		"may not specify volumeMode other than Filesystem")
	return errs
}

func validateAffinity(a *corev1.VolumeNodeAffinity, at *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	if a.Required == nil {
		return field.ErrorList{field.Required(at, "must specify required node constraints")}
	}
	return pod.ValidateNodeSelector(a.Required, at)
}

// validateAttributesClass checks the attributes class, which only volumes of
// CSI drivers have.
func validateAttributesClass(s *corev1.PersistentVolumeSpec) field.ErrorList {
	if s.VolumeAttributesClassName == nil {
		return nil
	}
	at := specPath.Child("volumeAttributesClassName")
	var errs field.ErrorList
	if name := *s.VolumeAttributesClassName; name == "" {
		errs = append(errs, field.Required(at, "an empty string is disallowed"))
	} else {
		errs = append(errs, check.Subdomain(name, at)...)
	}
	if s.CSI == nil {
		errs = append(errs, field.Required(specPath.Child("csi"), "has to be specified when using volumeAttributesClassName"))
	}
	return errs
}

// stableLabels are the names that labels of nodes have got, by those that they had in beta.
var stableLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType: corev1.LabelInstanceTypeStable, "beta.kubernetes.io/os": corev1.LabelOSStable,
	"beta.kubernetes.io/arch": corev1.LabelArchStable,
}

// withStableLabels is old with the stable names of labels wherever now has them.
func withStableLabels(now, old *corev1.VolumeNodeAffinity) *corev1.VolumeNodeAffinity {
	if now == nil || now.Required == nil || old.Required == nil || len(now.Required.NodeSelectorTerms) != len(old.Required.NodeSelectorTerms) {
		return old
	}
	old = old.DeepCopy()
	rename := func(now, old []corev1.NodeSelectorRequirement) {
		for i := range min(len(now), len(old)) {
			if stableLabels[old[i].Key] == now[i].Key {
				old[i].Key = now[i].Key
			}
		}
	}
	for i := range old.Required.NodeSelectorTerms {
		n, o := &now.Required.NodeSelectorTerms[i], &old.Required.NodeSelectorTerms[i]
		rename(n.MatchExpressions, o.MatchExpressions)
		rename(n.MatchFields, o.MatchFields)
	}
	return old
}

func sameVolume(now, old *corev1.PersistentVolumeSpec) field.ErrorList {
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(now.PersistentVolumeSource, withSecretsOf(now, old)) {
		errs = append(errs, field.Forbidden(specPath.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation"))
	}
	errs = append(errs, check.Unchanged(now.VolumeMode, old.VolumeMode, field.NewPath("volumeMode"))...)
	if old.NodeAffinity != nil && !equality.Semantic.DeepEqual(now.NodeAffinity, withStableLabels(now.NodeAffinity, old.NodeAffinity)) {
		errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), now.NodeAffinity,
			"field is immutable, except for updating from beta label to GA"))
	}
	if now.VolumeAttributesClassName == nil && old.VolumeAttributesClassName != nil {
		errs = append(errs, field.Forbidden(specPath.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden"))
	}
	return errs
}

// withSecretsOf is the old source with the secrets that a CSI driver needs to
// expand the volume: these may be added later.
func withSecretsOf(now, old *corev1.PersistentVolumeSpec) corev1.PersistentVolumeSource {
	source := *old.PersistentVolumeSource.DeepCopy()
	if source.CSI == nil || now.CSI == nil {
		return source
	}
	if source.CSI.ControllerExpandSecretRef == nil {
		source.CSI.ControllerExpandSecretRef = now.CSI.ControllerExpandSecretRef
	}
	if source.CSI.NodeExpandSecretRef == nil {
		source.CSI.NodeExpandSecretRef = now.CSI.NodeExpandSecretRef
	}
	return source
}

// sameClaim checks an update of a claim. It may set the volume, once. After
// that, the requested storage and the attributes class may change.
func sameClaim(now, old *corev1.PersistentVolumeClaim) field.ErrorList {
	was := old.Spec.DeepCopy()
	fillSources(was) // the claim may be older than the second field
	if was.VolumeName == "" {
		was.VolumeName = now.Spec.VolumeName
	}
	errs := sameClass(now, old)
	if class, annotated := old.Annotations[corev1.BetaStorageClassAnnotation]; was.StorageClassName == nil &&
		(!annotated || class == ptr.Deref(now.Spec.StorageClassName, "")) {
		was.StorageClassName = now.Spec.StorageClassName // the default class, set later
	}
	if old.Status.Phase == corev1.ClaimBound {
		if asked, ok := now.Spec.Resources.Requests[corev1.ResourceStorage]; ok && was.Resources.Requests != nil {
			was.Resources.Requests[corev1.ResourceStorage] = asked
		}
		was.VolumeAttributesClassName = now.Spec.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(*was, now.Spec) {
		errs = append(errs, field.Forbidden(specPath,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	before, asked := old.Spec.Resources.Requests[corev1.ResourceStorage], now.Spec.Resources.Requests[corev1.ResourceStorage]
	has := old.Status.Capacity[corev1.ResourceStorage]
	if asked.Cmp(before) < 0 && asked.Cmp(has) <= 0 {
		errs = append(errs, field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	return append(errs, check.Unchanged(now.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
}

// sameClass checks the annotation that names the class of old claims: it stays, or the field
// takes its place.
func sameClass(now, old *corev1.PersistentVolumeClaim) field.ErrorList {
	const key = corev1.BetaStorageClassAnnotation
	class, annotated := old.Annotations[key]
	_, still := now.Annotations[key]
	if annotated && !still && old.Spec.StorageClassName == nil && now.Spec.StorageClassName != nil && *now.Spec.StorageClassName == class {
		return nil
	}
	return check.Unchanged(now.Annotations[key], class, field.NewPath("metadata", "annotations", key))
}
