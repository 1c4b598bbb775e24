package volume

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/claim"
)

// ClaimStrategy is the strategy of persistent volume claims.
func ClaimStrategy(clock clock.PassiveClock) registry.Strategy[*corev1.PersistentVolumeClaim] {
	status := corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()
	return registry.WithStatus(registry.Strategy[*corev1.PersistentVolumeClaim]{
		Resource: Claims,
		Singular: "persistentvolumeclaim", ShortNames: []string{"pvc"},
		Default: DefaultClaim,
		Create: registry.CreateStrategy[*corev1.PersistentVolumeClaim]{
			Prepare: func(_ context.Context, c *corev1.PersistentVolumeClaim) {
				c.Status.Phase = corev1.ClaimPending
				syncDataSources(&c.Spec)
			},
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, c *corev1.PersistentVolumeClaim) field.ErrorList {
				return claim.ValidateSpec(&c.Spec, specPath)
			},
			Warnings: warnings,
		},
		Update: registry.UpdateStrategy[*corev1.PersistentVolumeClaim]{
			AllowUnconditional: true,
			Prepare:            func(_ context.Context, c, old *corev1.PersistentVolumeClaim) { updateDataSources(&c.Spec, &old.Spec) },
			Validate: func(_ context.Context, c, old *corev1.PersistentVolumeClaim) field.ErrorList {
				return append(claim.ValidateSpec(&c.Spec, specPath), sameClaim(c, old)...)
			},
			Warnings: func(ctx context.Context, c, _ *corev1.PersistentVolumeClaim) []string { return warnings(ctx, c) },
		},
		Status: &registry.UpdateStrategy[*corev1.PersistentVolumeClaim]{
			Prepare: func(_ context.Context, c, old *corev1.PersistentVolumeClaim) {
				if old.Status.HealthStatus == nil {
					c.Status.HealthStatus = nil // belongs to an alpha feature
				}
			},
			Validate: func(_ context.Context, c, _ *corev1.PersistentVolumeClaim) field.ErrorList {
				return validateClaimStatus(&c.Status)
			},
		},
		Delete: registry.DeleteStrategy[*corev1.PersistentVolumeClaim]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*corev1.PersistentVolumeClaim]{
			Columns: cell.Describe(cell.Columns(corev1.PersistentVolumeClaimSpec{}.SwaggerDoc(),
				"Name", "Status", "Volume=volumeName", "Capacity", "Access Modes=accessModes", "StorageClass=storageClassName",
				"VolumeAttributesClass=volumeAttributesClassName", "Age", "VolumeMode*=volumeMode",
			), map[string]string{
				"Status":                status["phase"],
				"Capacity":              status["capacity"],
				"Access Modes":          status["accessModes"],
				"StorageClass":          "StorageClass of the pvc",
				"VolumeAttributesClass": "VolumeAttributesClass of the pvc",
			}),
			Row: func(c *corev1.PersistentVolumeClaim) []any { return claimRow(c, clock.Now()) },
		},
	})
}

func claimRow(c *corev1.PersistentVolumeClaim, now time.Time) []any {
	phase, capacity, access := string(c.Status.Phase), "", ""
	if c.DeletionTimestamp != nil {
		phase = terminating
	}
	if c.Spec.VolumeName != "" {
		amount := c.Status.Capacity[corev1.ResourceStorage]
		capacity, access = amount.String(), modes(c.Status.AccessModes)
	}
	return []any{
		c.Name, phase, c.Spec.VolumeName, capacity, access, ClassOf(c),
		orUnset(c.Spec.VolumeAttributesClassName), cell.Age(now, c.CreationTimestamp), orUnset(c.Spec.VolumeMode),
	}
}

// DefaultClaim fills in what a claim, or the template of one, leaves out, and
// rounds its amounts.
func DefaultClaim(c *corev1.PersistentVolumeClaim) {
	if c.Status.Phase == "" {
		c.Status.Phase = corev1.ClaimPending
	}
	if c.Spec.VolumeMode == nil {
		c.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
	}
	check.RoundUpQuantities(c.Spec.Resources.Limits, c.Spec.Resources.Requests, c.Status.Capacity, c.Status.AllocatedResources)
}

// ClassOf is the storage class of a claim, or "".
func ClassOf(c *corev1.PersistentVolumeClaim) string {
	return class(c.Annotations, ptr.Deref(c.Spec.StorageClassName, ""))
}

func warnings(_ context.Context, c *corev1.PersistentVolumeClaim) []string {
	return append(classWarnings(c.Annotations), check.ClaimWarnings(&c.Spec, "spec")...)
}

// classWarnings warns about the annotation that named the class before there
// was a field for it.
func classWarnings(annotations map[string]string) []string {
	if _, ok := annotations[corev1.BetaStorageClassAnnotation]; !ok {
		return nil
	}
	return []string{"metadata.annotations[" + corev1.BetaStorageClassAnnotation +
		`]: deprecated since v1.8; use "storageClassName" attribute instead`}
}

const snapshotGroup = "snapshot.storage.k8s.io"

// syncDataSources sets dataSource and dataSourceRef to the same source, and drops
// what is not supported: sources other than claims and snapshots in the older
// field, if that is the only one, and sources in other namespaces (an alpha feature).
func syncDataSources(s *corev1.PersistentVolumeClaimSpec) {
	if ref := s.DataSourceRef; ref != nil && ptr.Deref(ref.Namespace, "") != "" {
		s.DataSourceRef = nil
	}
	if s.DataSourceRef == nil {
		dropUnpromised(s)
	}
	fillSources(s)
}

// updateDataSources does for an update what syncDataSources does for a new claim,
// for older clients leave out dataSourceRef. Unsupported sources are dropped from
// new claims; stored ones keep theirs.
func updateDataSources(s, old *corev1.PersistentVolumeClaimSpec) {
	if old.DataSource == nil && old.DataSourceRef == nil && s.DataSourceRef == nil {
		dropUnpromised(s)
	}
	fillSources(s)
}

func dropUnpromised(s *corev1.PersistentVolumeClaimSpec) {
	d := s.DataSource
	if d == nil {
		return
	}
	group := ptr.Deref(d.APIGroup, "")
	if (group != "" || d.Kind != "PersistentVolumeClaim") && (group != snapshotGroup || d.Kind != "VolumeSnapshot") {
		s.DataSource = nil
	}
}

// fillSources sets the one of the two source fields that is empty from the
// other. The older one can't name a namespace.
func fillSources(s *corev1.PersistentVolumeClaimSpec) {
	switch {
	case s.DataSource == nil && s.DataSourceRef != nil && ptr.Deref(s.DataSourceRef.Namespace, "") == "":
		ref := s.DataSourceRef
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	case s.DataSource != nil && s.DataSourceRef == nil:
		s.DataSourceRef = claim.Reference(s.DataSource)
	}
}

var resizeStatuses = []corev1.ClaimResourceStatus{
	corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizePending,
}

func validateClaimStatus(s *corev1.PersistentVolumeClaimStatus) field.ErrorList {
	var errs field.ErrorList
	status := field.NewPath("status")
	for name, amount := range s.Capacity {
		errs = append(errs, validateQuantity(amount, status.Child("capacity").Key(string(name)))...)
	}
	storageOnly := func(name corev1.ResourceName, at *field.Path) bool {
		wrong := check.QualifiedName(string(name), at)
		if len(wrong) == 0 && check.IsNative(name) && name != corev1.ResourceStorage {
			wrong = field.ErrorList{field.NotSupported(at, name, []corev1.ResourceName{corev1.ResourceStorage})}
		}
		errs = append(errs, wrong...)
		return len(wrong) == 0
	}
	at := status.Child("allocatedResourceStatuses")
	for name, is := range s.AllocatedResourceStatuses {
		if storageOnly(name, at); !slices.Contains(resizeStatuses, is) {
			errs = append(errs, field.NotSupported(at, name, resizeStatuses)) // upstream names the resource here, not its status
		}
	}
	at = status.Child("allocatedResources")
	for name, amount := range s.AllocatedResources {
		if storageOnly(name, at) {
			errs = append(errs, validateQuantity(amount, at.Key(string(name)))...)
		}
	}
	return errs
}
