package controllers

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/resources/volume"
)

// A bound volume names the version of its claim, and the claim says that no pod uses it.
func TestBoundClaim(t *testing.T) {
	t.Parallel()
	c := start(t)
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volumes, claims := c.Root().Resource(volume.Volumes, ""), c.Root().Resource(volume.Claims, "default")
	c.Must(volumes.Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
	}}, nil))
	var made corev1.PersistentVolumeClaim
	c.Must(claims.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, StorageClassName: new(""), Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}, &made))
	c.Until("the claim says that it is unused", func(ctx context.Context) bool {
		return claims.Get(ctx, "data", &made) == nil && slices.ContainsFunc(made.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == corev1.PersistentVolumeClaimUnused && c.Status == corev1.ConditionTrue
		})
	})
	if got, want := managersOf(&made),
		`kctl Update "" f:spec, kube-controller-manager Update "" f:metadata f:spec, kube-controller-manager Update "status" f:status`; got != want {
		t.Errorf("the claim's managers are %s", got)
	}
	var disk corev1.PersistentVolume
	c.Must(volumes.Get(t.Context(), "disk", &disk))
	if ref := disk.Spec.ClaimRef; ref == nil || ref.Name != "data" || ref.UID != made.UID || ref.ResourceVersion == "" {
		t.Errorf("the volume is bound to %+v", ref)
	}
}
