package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeleteCollection implements Resource.
func (s *Store[T]) DeleteCollection(ctx context.Context, namespace string, admit Admission, o *metav1.DeleteOptions,
	list ListOptions) (List, error) {
	return DeleteEach(ctx, s, namespace, admit, o, list)
}

// DeleteEach deletes the objects of a list of r one after the other, and returns
// the list as it was. Objects that others delete meanwhile are skipped; the first
// other error ends it.
func DeleteEach(ctx context.Context, r Objects, namespace string, admit Admission, o *metav1.DeleteOptions,
	list ListOptions) (List, error) {
	if list.ResourceVersionMatch == "" && list.ResourceVersion != "" && list.ResourceVersion != "0" && list.Continue == "" {
		list.ResourceVersionMatch = metav1.ResourceVersionMatchExact // upstream reads it in pages
	}
	found, err := r.List(ctx, namespace, list)
	if err != nil {
		return List{}, err
	}
	for _, item := range found.Items {
		obj, err := r.Decode(item)
		var status apierrors.APIStatus
		switch {
		case errors.As(err, &status): // it could not be converted
			return List{}, err
		case err != nil:
			return List{}, apierrors.NewInternalError(err)
		}
		// Deleting one object sets its grace period in the options, so each gets a copy.
		options := o.DeepCopy()
		if _, _, err := r.Delete(ctx, obj.GetNamespace(), obj.GetName(), admit, options); err != nil && !apierrors.IsNotFound(err) {
			return List{}, err
		}
	}
	return found, nil
}
