package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A claim without a class may get one, also when it is bound; the annotation of old claims
// stays, or the field takes its place (as kube-apiserver v1.37.2 answers).
func TestClassOfAClaim(t *testing.T) {
	claim := func(class *string, annotation string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: class}}
		c.Status.Phase = corev1.ClaimBound
		if annotation != "" {
			c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: annotation}
		}
		return c
	}
	a, b := new("a"), new("b")
	for _, test := range []struct {
		name     string
		old, now *corev1.PersistentVolumeClaim
		errors   int
	}{
		{"a first class", claim(nil, ""), claim(a, ""), 0},
		{"another class", claim(a, ""), claim(b, ""), 1},
		{"no class any longer", claim(a, ""), claim(nil, ""), 1},
		{"the annotation's", claim(nil, "a"), claim(a, ""), 0},
		{"the annotation's, which stays", claim(nil, "a"), claim(a, "a"), 0},
		{"not the annotation's", claim(nil, "a"), claim(b, "a"), 1},
		{"another annotation", claim(nil, "a"), claim(nil, "b"), 1},
		{"a new annotation", claim(nil, ""), claim(nil, "b"), 1},
	} {
		if errs := sameClaim(test.now, test.old); len(errs) != test.errors {
			t.Errorf("%s: %v", test.name, errs)
		}
	}
}
