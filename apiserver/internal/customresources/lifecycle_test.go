package customresources

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/customresourcedefinition"
)

// TestStopsWhileStoresBegin: definitions that end while a first request comes for their
// objects wait for a store that has begun, and begin no more: the race detector would
// see it.
func TestStopsWhileStoresBegin(t *testing.T) {
	o := registry.Options{Clock: clock.RealClock{}, Logger: zap.NewNop()}
	for range 200 {
		d := New(Options{Store: registry.NewStore(customresourcedefinition.Strategy(clock.RealClock{}), o), Registry: o})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = d.Run(ctx) })
		all.Go(func() { d.start(func() { <-d.ctx.Done() }) })
		all.Go(stop)
		all.Wait()
	}
}
