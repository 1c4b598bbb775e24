package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/watch"
)

// What can't be read in a new list is given back as it was, while plugins copy it: the
// race detector sees it if it is written to.
func TestKeptObjectsAreNotWrittenTo(t *testing.T) {
	kept := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	sink := slim[*corev1.PersistentVolume]{watch.NewStore(nil, watch.Handler[*corev1.PersistentVolume]{})}
	sink.Replace([]*corev1.PersistentVolume{kept})
	copied := make(chan *corev1.PersistentVolume)
	go func() { copied <- kept.DeepCopy() }()
	sink.Replace([]*corev1.PersistentVolume{kept})
	if got := <-copied; len(got.ManagedFields) > 0 {
		t.Errorf("kept with %v", got.ManagedFields)
	}
}
