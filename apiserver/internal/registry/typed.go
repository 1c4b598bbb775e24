package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// What follows is for callers inside the server, which know the type and need
// no admission.

// ListTyped reads a collection and its resourceVersion. The caller may change the objects.
func (s *Store[T]) ListTyped(ctx context.Context, namespace string, o ListOptions) ([]T, string, error) {
	list, err := s.List(ctx, namespace, o)
	if err != nil {
		return nil, "", err
	}
	out := make([]T, len(list.Items))
	for i, item := range list.Items {
		if out[i], err = s.decode(item.JSON); err != nil {
			return nil, "", apierrors.NewInternalError(err)
		}
	}
	return out, list.ResourceVersion, nil
}

// CreateTyped stores a new object and returns it as stored.
func (s *Store[T]) CreateTyped(ctx context.Context, obj T) (T, error) {
	var none T
	e, err := s.Create(ctx, obj, Admission{}, &metav1.CreateOptions{})
	if err != nil {
		return none, err
	}
	return s.decode(e.JSON)
}

// UpdateTyped changes an object through one of its ways: "", "status" or a
// subresource of the strategy. change may be called several times, each time
// with a fresh copy, which it changes in place. The server owns the changed
// fields from then on, in the object's managedFields.
func (s *Store[T]) UpdateTyped(ctx context.Context, namespace, name, subresource string, change func(obj T) error) (T, error) {
	var none T
	e, _, err := s.Update(ctx, Target{Namespace: namespace, Name: name, Subresource: subresource},
		func(current core.Object) (core.Object, error) {
			if current == nil {
				return nil, apierrors.NewNotFound(s.groupResource(), name)
			}
			return current, change(current.(T))
		}, Admission{FieldManager: ServerManager}, &metav1.UpdateOptions{})
	if err != nil {
		return none, err
	}
	return s.decode(e.JSON)
}

// DeleteTyped deletes an object or marks it as being deleted; options may be nil.
func (s *Store[T]) DeleteTyped(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) error {
	_, _, err := s.Delete(ctx, namespace, name, Admission{}, options)
	return err
}

// cached returns an object as the cache has it.
func (s *Store[T]) cached(namespace, name string) (T, bool) {
	var none T
	e, ok := s.cache.Get(s.key(namespace, name))
	if !ok {
		return none, false
	}
	obj, err := s.decode(e.Value)
	if err != nil {
		return none, false
	}
	return obj, true
}
