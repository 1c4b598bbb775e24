package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// updater is what Modify needs of Objects.
type updater interface {
	Update(ctx context.Context, target Target, change Transform, admit Admission, o *metav1.UpdateOptions) (e Encoded, created bool, err error)
}

// Modify changes an object for one of the server's own loops, without admission
// and leaving managedFields as they are.
func Modify(ctx context.Context, objects updater, target Target, change Transform) error {
	_, _, err := objects.Update(ctx, target, change, Admission{}, &metav1.UpdateOptions{})
	return err
}
