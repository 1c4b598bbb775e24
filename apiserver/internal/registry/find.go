package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
)

// Find asks the cache first, and the store if the cache does not have the
// object: it may be newer than the cache.
func Find[T core.Object](ctx context.Context, objects Objects, namespace, name string) (obj T, err error) {
	obj, err = getAt[T](ctx, objects, namespace, name, "0")
	if apierrors.IsNotFound(err) {
		return GetStored[T](ctx, objects, namespace, name)
	}
	return obj, err
}

// GetStored reads an object as it is stored now. Maps and slices of it may be shared
// with the cache (see Store.Decode), and must not be changed.
func GetStored[T core.Object](ctx context.Context, objects Objects, namespace, name string) (T, error) {
	return getAt[T](ctx, objects, namespace, name, "")
}

func getAt[T core.Object](ctx context.Context, objects Objects, namespace, name, resourceVersion string) (T, error) {
	var none T
	encoded, err := objects.Get(ctx, namespace, name, resourceVersion)
	if err != nil {
		return none, err
	}
	decoded, err := objects.Decode(encoded)
	if err != nil {
		return none, apierrors.NewInternalError(err)
	}
	obj, ok := decoded.(T)
	if !ok {
		return none, fmt.Errorf("%s %s/%s is a %T", objects.Info().Name, namespace, name, decoded)
	}
	return obj, nil
}
