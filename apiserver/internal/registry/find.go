package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
)

// Find asks the cache first, and the store if the cache does not have the
// object: it may be newer than the cache.
func Find[T core.Object](ctx context.Context, resource Resource, namespace, name string) (obj T, err error) {
	encoded, err := resource.Get(ctx, namespace, name, "0")
	if apierrors.IsNotFound(err) {
		encoded, err = resource.Get(ctx, namespace, name, "")
	}
	if err != nil {
		return obj, err
	}
	decoded, err := resource.Decode(encoded)
	if err != nil {
		return obj, err
	}
	obj, ok := decoded.(T)
	if !ok {
		return obj, fmt.Errorf("%s %s/%s is a %T", resource.Info().Name, namespace, name, decoded)
	}
	return obj, nil
}
