package housekeeping

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/registry"
)

// grow has the loop follow the resources that come and go. They may own others,
// and be owned, like those that are always there.
func (o *owners) grow(d *Dependencies, synced []<-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		wake := make(chan struct{}, 1)
		forget := d.More.OnChange(func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		defer forget()
		g := &grower{owners: o, dependencies: d, synced: synced, grown: map[schema.GroupKind]*grownKind{}}
		defer g.running.Wait()
		for {
			g.catchUp(ctx)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-wake:
			}
		}
	}
}

// grower keeps the kinds that come and go.
type grower struct {
	*owners
	dependencies *Dependencies
	synced       []<-chan struct{}
	running      sync.WaitGroup
	grown        map[schema.GroupKind]*grownKind
}

// grownKind is a kind that may go again.
type grownKind struct {
	*kind
	stop context.CancelFunc
}

// catchUp follows what is new and lets go of what is gone.
func (g *grower) catchUp(ctx context.Context) {
	now := map[schema.GroupKind]registry.Resource{}
	for _, r := range g.dependencies.More.Resources() {
		now[r.Info().GVK().GroupKind()] = r
	}
	for gk, k := range g.grown {
		if now[gk] != nil {
			continue
		}
		k.stop()
		delete(g.grown, gk)
		g.all.Lock()
		delete(g.kinds, gk)
		g.all.Unlock()
		// With a kind go its objects, whether or not each was seen to go.
		k.mirror.Each(func(key facts.Key, object owned) { g.changed(gk, key, &object, nil) })
	}
	for gk, r := range now {
		before := g.grown[gk]
		if before != nil && before.store == r {
			continue
		}
		if before == nil && g.owners.kind(gk) != nil {
			continue // of a built-in resource
		}
		g.follow(ctx, gk, r, before)
	}
}

// follow follows a resource, which may be another one than before of the same
// kind: its definition has changed.
func (g *grower) follow(ctx context.Context, gk schema.GroupKind, r registry.Resource, before *grownKind) {
	ctx, stop := context.WithCancel(ctx)
	k := &grownKind{kind: g.add(g.dependencies, r), stop: stop}
	g.grown[gk] = k
	g.running.Go(func() { _ = k.mirror.Run(ctx) }) // both end with their context, and with nothing else
	g.running.Go(func() {
		_ = after(func(ctx context.Context) error {
			if before != nil {
				g.missed(gk, before.kind, k.kind)
			}
			return k.worker.run(ctx)
		}, slices.Concat(g.synced, []<-chan struct{}{k.mirror.Synced()})...)(ctx)
	})
	if before != nil {
		before.stop()
	}
}

// missed tells of what went while nobody followed the kind.
func (g *grower) missed(gk schema.GroupKind, before, now *kind) {
	before.mirror.Each(func(key facts.Key, object owned) {
		if known, ok := now.mirror.Get(key.Namespace, key.Name); !ok || known.uid != object.uid {
			g.changed(gk, key, &object, nil)
		}
	})
}
