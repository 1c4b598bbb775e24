package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeleteCollection implements Resource.
func (s *Store[T]) DeleteCollection(ctx context.Context, namespace string, admit Admit, o *metav1.DeleteOptions, list ListOptions) (List, error) {
	return DeleteEach(ctx, s, namespace, admit, o, list)
}

// DeleteEach deletes what a list of r has, one object after the other. Objects
// that somebody else deletes meanwhile are passed over; the first other error
// ends it.
func DeleteEach(ctx context.Context, r Objects, namespace string, admit Admit, o *metav1.DeleteOptions, list ListOptions) (List, error) {
	found, err := r.List(ctx, namespace, list)
	if err != nil {
		return List{}, err
	}
	deleted := List{ResourceVersion: found.ResourceVersion, Continue: found.Continue, Remaining: found.Remaining}
	for _, item := range found.Items {
		obj, err := r.Decode(item)
		if err != nil {
			return List{}, apierrors.NewInternalError(err)
		}
		// Those of one object come to have its grace period.
		options := o.DeepCopy()
		result, _, err := r.Delete(ctx, obj.GetNamespace(), obj.GetName(), admit, options)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return List{}, err
		}
		deleted.Items = append(deleted.Items, result)
	}
	return deleted, nil
}
