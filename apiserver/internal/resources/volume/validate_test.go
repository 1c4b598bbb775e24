package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestClaimFromBeforeTwoSources: a claim that was stored before dataSourceRef
// existed can be updated.
func TestClaimFromBeforeTwoSources(t *testing.T) {
	old := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "foo"}}}
	now := old.DeepCopy()
	fillSources(&now.Spec)
	if errs := sameClaim(now, old); len(errs) > 0 {
		t.Error(errs)
	}
	if old.Spec.DataSourceRef != nil {
		t.Error("the stored object was changed")
	}
	if now.Spec.DataSourceRef.Name = "bar"; len(sameClaim(now, old)) == 0 {
		t.Error("another source is taken")
	}
}
