package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
)

func claims(clock clock.PassiveClock) registry.Strategy[*corev1.PersistentVolumeClaim] {
	return registry.WithStatus(registry.Strategy[*corev1.PersistentVolumeClaim]{
		Resource: Claims,
		Singular: "persistentvolumeclaim", ShortNames: []string{"pvc"},
		Default:          DefaultClaim,
		ValidateName:     check.NameIsSubdomain,
		PrepareForCreate: func(_ context.Context, c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending },
		Validate: func(_ context.Context, c *corev1.PersistentVolumeClaim) field.ErrorList {
			return ValidateClaimSpec(&c.Spec, specPath)
		},
		Update: registry.Change[*corev1.PersistentVolumeClaim]{Validate: func(_ context.Context, c, old *corev1.PersistentVolumeClaim) field.ErrorList {
			return append(ValidateClaimSpec(&c.Spec, specPath), sameClaim(c, old)...)
		}},
		Status: &registry.Change[*corev1.PersistentVolumeClaim]{Validate: func(_ context.Context, c, _ *corev1.PersistentVolumeClaim) field.ErrorList {
			var errs field.ErrorList
			for name, amount := range c.Status.Capacity {
				errs = append(errs, check.Quantity(name, amount, field.NewPath("status", "capacity").Key(string(name)))...)
			}
			return errs
		}},
		UnconditionalUpdate: true,
		Columns: cell.Columns(corev1.PersistentVolumeClaimSpec{}.SwaggerDoc(), "Name", "Status", "Volume=volumeName", "Capacity",
			"Access Modes=accessModes", "StorageClass=storageClassName", "VolumeAttributesClass=volumeAttributesClassName", "Age",
			"VolumeMode*=volumeMode"),
		Row: func(c *corev1.PersistentVolumeClaim) []any {
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
				orUnset(c.Spec.VolumeAttributesClassName), cell.Age(clock.Now(), c.CreationTimestamp), orUnset(c.Spec.VolumeMode),
			}
		},
	})
}

// DefaultClaim fills in what a claim, or the template of one, leaves out.
func DefaultClaim(c *corev1.PersistentVolumeClaim) {
	if c.Status.Phase == "" {
		c.Status.Phase = corev1.ClaimPending
	}
	if c.Spec.VolumeMode == nil {
		c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
	}
}

// ClassOf is the storage class of a claim, or "".
func ClassOf(c *corev1.PersistentVolumeClaim) string {
	return class(c.Annotations, ptr.Deref(c.Spec.StorageClassName, ""))
}
