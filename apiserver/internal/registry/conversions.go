package registry

import (
	"context"
	"runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Conversions bounds how many long lists are converted at once into another form
// than the stored JSON: while it is, a list takes many times its size, and there
// is nothing to gain from more than one for each processor. Waiting for a slow
// client needs no place. nil is no bound.
type Conversions chan struct{}

// longList is the size from which a list needs a place. Below it, a place for
// each request in flight takes little memory, and waiting behind a long list would
// take longer than the list.
const longList = 1 << 20

// NewConversions returns a bound of one list for each processor.
func NewConversions() Conversions { return make(Conversions, runtime.GOMAXPROCS(0)) }

// Enter waits for a place until ctx ends; leave gives it back. Whoever has a place must
// not enter again.
func (c Conversions) Enter(ctx context.Context, items []Encoded) (leave func(), err error) {
	size := 0
	for _, item := range items {
		size += len(item.JSON)
	}
	if size < longList || c == nil {
		return func() {}, nil
	}
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, apierrors.NewTimeoutError("the request ended before its list could be converted: too many others are being converted", 0)
	}
}
