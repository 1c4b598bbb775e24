package apps

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// The templates of a set's claims never change. One that an older server let through keeps
// nobody from scaling the set, or from removing a finalizer.
func TestStoredClaimTemplatesAreNotValidatedAgain(t *testing.T) {
	labels := map[string]string{"a": "b"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "y"}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")}},
			DataSource:  &corev1.TypedLocalObjectReference{APIGroup: new("no group"), Kind: "k", Name: "n"},
		}}},
	}}
	strategy := statefulSet(clock.RealClock{})
	strategy.Default(set)
	if errs := strategy.Create.Validate(t.Context(), set); len(errs) != 1 || errs[0].Field != "spec.volumeClaimTemplates[0].spec.dataSource.apiGroup" {
		t.Errorf("a new set: %v", errs)
	}
	scaled := set.DeepCopy()
	scaled.Spec.Replicas = new(int32(3))
	if errs := strategy.Update.Validate(t.Context(), scaled, set); len(errs) > 0 {
		t.Errorf("scaling a stored set: %v", errs)
	}
}
