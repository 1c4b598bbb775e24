package housekeeping

import (
	"context"

	"golang.org/x/sync/errgroup"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

func runAll(ctx context.Context, parts []func(ctx context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}

// afterSync runs part once all of synced are closed: a loop must not act on a part
// of what is stored.
func afterSync(part func(ctx context.Context) error, synced ...<-chan struct{}) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		for _, c := range synced {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-c:
			}
		}
		return part(ctx)
	}
}

// newInformer returns an informer of a resource, and its store.
func newInformer[P any](
	d *Dependencies, resource core.Resource, project func(core.Object) P,
) (*informer.Informer[P], registry.Resource, error) {
	return newInformerWith(d, resource, project, informer.Options[P]{})
}

func newInformerWith[P any](
	d *Dependencies, resource core.Resource, project func(core.Object) P, o informer.Options[P],
) (*informer.Informer[P], registry.Resource, error) {
	store, err := d.Store(resource)
	if err != nil {
		return nil, nil, err
	}
	return informer.New(store, project, o, d.Clock, d.Logger), store, nil
}

// whole is the projection of those who need all of an object.
func whole[T core.Object](obj core.Object) T { return obj.(T) }
