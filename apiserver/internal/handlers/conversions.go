package handlers

import (
	"context"
	"runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/registry"
)

// conversions bounds how many long lists are converted at once into another form
// than the stored JSON: while it is, a list takes many times its size, and there
// is nothing to gain from more than one for each processor. Waiting for a slow
// client needs no place.
type conversions chan struct{}

// longList is the size from which a list needs a place. Below it, a place for
// each request in flight takes little memory, and waiting behind a long list would
// take longer than the list.
const longList = 1 << 20

func newConversions() conversions { return make(conversions, runtime.GOMAXPROCS(0)) }

// enter waits for a place until ctx ends; leave gives it back.
func (c conversions) enter(ctx context.Context, items []registry.Encoded) (leave func(), err error) {
	size := 0
	for _, item := range items {
		size += len(item.JSON)
	}
	if size < longList {
		return func() {}, nil
	}
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, apierrors.NewTimeoutError("the request ended before its list could be converted: too many are", 0)
	}
}
