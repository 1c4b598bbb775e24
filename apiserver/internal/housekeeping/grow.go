package housekeeping

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/registry"
)

// grow makes the loop follow the resources that come and go. They may own
// others, and be owned, like built-in ones.
func (o *owners) grow(d *Dependencies, synced []<-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		wake := make(chan struct{}, 1)
		told := func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
		if d.More != nil {
			defer d.More.OnChange(told)()
		}
		if d.Others != nil {
			defer d.Others.OnChange(told)()
		}
		g := &grower{owners: o, dependencies: d, synced: synced, grown: map[schema.GroupKind]*grownKind{}, away: map[schema.GroupKind]*kind{}}
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

// grower follows the kinds that come and go.
type grower struct {
	*owners
	dependencies *Dependencies
	synced       []<-chan struct{}
	running      sync.WaitGroup
	grown        map[schema.GroupKind]*grownKind
	// away are kinds of other servers that were followed and are not now. Their
	// objects may still exist, and block their owners until they are known to be
	// gone.
	away map[schema.GroupKind]*kind
}

// grownKind is a kind that may go away again.
type grownKind struct {
	*kind
	stop context.CancelFunc
	// others: another server has its objects.
	others bool
}

// now returns the present resources, and which of them are other servers'.
// Those stored here take precedence.
func (g *grower) now() (resources map[schema.GroupKind]registry.Objects, others map[schema.GroupKind]bool) {
	resources, others = map[schema.GroupKind]registry.Objects{}, map[schema.GroupKind]bool{}
	if g.dependencies.Others != nil {
		for _, r := range g.dependencies.Others.Collectable() {
			gk := r.Info().GVK().GroupKind()
			resources[gk], others[gk] = r, true
		}
	}
	if g.dependencies.More != nil {
		for _, r := range g.dependencies.More.Resources() {
			gk := r.Info().GVK().GroupKind()
			resources[gk], others[gk] = r, false
		}
	}
	return resources, others
}

// catchUp follows new kinds and drops those that are gone.
func (g *grower) catchUp(ctx context.Context) {
	now, others := g.now()
	for gk, k := range g.grown {
		if now[gk] == nil {
			g.letGo(gk, k)
		}
	}
	for gk, r := range now {
		before := g.grown[gk]
		if before != nil && before.store == r {
			continue
		}
		if before == nil && g.owners.kind(gk) != nil {
			continue // of a built-in resource
		}
		g.follow(ctx, gk, r, before, others[gk])
	}
}

func (g *grower) letGo(gk schema.GroupKind, k *grownKind) {
	k.stop()
	delete(g.grown, gk)
	g.all.Lock()
	delete(g.kinds, gk)
	g.all.Unlock()
	if k.others {
		g.away[gk] = k.kind
		return
	}
	// A kind's objects go with it, whether or not each one was seen to go.
	k.mirror.Each(func(key facts.Key, object owned) { g.changed(gk, key, &object, nil) })
}

// follow follows a resource, which may differ from the earlier one of the same
// kind: its definition has changed, or another server has its objects.
func (g *grower) follow(ctx context.Context, gk schema.GroupKind, r registry.Objects, before *grownKind, others bool) {
	ctx, stop := context.WithCancel(ctx)
	k := &grownKind{kind: g.add(g.dependencies, r), stop: stop, others: others}
	g.grown[gk] = k
	known := g.away[gk]
	delete(g.away, gk)
	if before != nil {
		known = before.kind
		before.stop()
	}
	g.running.Go(func() { _ = k.mirror.Run(ctx) }) // both end with their context, and with nothing else
	g.running.Go(func() {
		_ = after(func(ctx context.Context) error {
			if known != nil {
				g.missed(gk, known, k.kind)
			}
			g.lookAtOwnedBy(gk)
			return k.worker.run(ctx)
		}, slices.Concat(g.synced, []<-chan struct{}{k.mirror.Synced()})...)(ctx)
	})
}

// missed reports objects that went while the kind was not followed.
func (g *grower) missed(gk schema.GroupKind, before, now *kind) {
	before.mirror.Each(func(key facts.Key, object owned) {
		if known, ok := now.mirror.Get(key.Namespace, key.Name); !ok || known.uid != object.uid {
			g.changed(gk, key, &object, nil)
		}
	})
}
