package housekeeping

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
)

// followDynamicKinds makes the loop follow the resources that come and go. They may own
// others, and be owned, like built-in ones.
func (o *garbageCollector) followDynamicKinds(d *Dependencies, synced []<-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		wake := make(chan struct{}, 1)
		notify := func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
		if d.DynamicResources != nil {
			defer d.DynamicResources.OnChange(notify)()
		}
		if d.AggregatedServers != nil {
			defer d.AggregatedServers.OnChange(notify)()
		}
		g := &dynamicKinds{
			garbageCollector: o, dependencies: d, synced: synced, followed: map[schema.GroupKind]*dynamicKind{},
			dropped: map[schema.GroupKind]*kind{},
		}
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

// dynamicKinds follows the kinds that come and go.
type dynamicKinds struct {
	*garbageCollector
	dependencies *Dependencies
	synced       []<-chan struct{}
	running      sync.WaitGroup
	followed     map[schema.GroupKind]*dynamicKind
	// dropped are kinds of other servers that were followed and are not now. Their
	// objects may still exist, and block their owners until they are known to be
	// gone.
	dropped map[schema.GroupKind]*kind
}

// dynamicKind is a kind that may go away again.
type dynamicKind struct {
	*kind
	stop context.CancelFunc
	// aggregated: another server has its objects.
	aggregated bool
}

// currentResources returns the present resources, and which of them are other servers'.
// Those stored here take precedence; missing says why there may be more of them, nil if there are
// none.
func (g *dynamicKinds) currentResources() (
	resources map[schema.GroupKind]registry.Objects, others map[schema.GroupKind]bool, missing error,
) {
	resources, others = map[schema.GroupKind]registry.Objects{}, map[schema.GroupKind]bool{}
	if g.dependencies.AggregatedServers != nil {
		for _, r := range g.dependencies.AggregatedServers.Collectable() {
			gk := r.Info().GVK().GroupKind()
			resources[gk], others[gk] = r, true
		}
	}
	if g.dependencies.DynamicResources != nil {
		var present []registry.Resource
		present, missing = g.dependencies.DynamicResources.Resources()
		for _, r := range present {
			gk := r.Info().GVK().GroupKind()
			resources[gk], others[gk] = r, false
		}
	}
	return resources, others, missing
}

// catchUp follows new kinds and drops those that are gone. One that is missing only because its
// definition can't be read stays: its objects still exist.
func (g *dynamicKinds) catchUp(ctx context.Context) {
	now, others, missing := g.currentResources()
	for gk, k := range g.followed {
		if now[gk] == nil && (missing == nil || k.aggregated) {
			g.drop(gk, k)
		}
	}
	for gk, r := range now {
		before := g.followed[gk]
		if before != nil && before.store == r {
			continue
		}
		if before == nil && g.garbageCollector.kind(gk) != nil {
			continue // of a built-in resource
		}
		g.follow(ctx, gk, r, before, others[gk])
	}
}

func (g *dynamicKinds) drop(gk schema.GroupKind, k *dynamicKind) {
	k.stop()
	delete(g.followed, gk)
	g.kindsMu.Lock()
	delete(g.kinds, gk)
	g.kindsMu.Unlock()
	if k.aggregated {
		g.dropped[gk] = k.kind
		return
	}
	// A kind's objects go with it, whether or not each one was seen to go.
	k.informer.Each(func(key informer.Key, object owned) { g.handleChange(gk, key, &object, nil) })
}

// follow follows a resource, which may differ from the earlier one of the same
// kind: its definition has changed, or another server has its objects.
func (g *dynamicKinds) follow(ctx context.Context, gk schema.GroupKind, r registry.Objects, before *dynamicKind, others bool) {
	ctx, stop := context.WithCancel(ctx)
	k := &dynamicKind{kind: g.addKind(g.dependencies, r), stop: stop, aggregated: others}
	g.followed[gk] = k
	known := g.dropped[gk]
	delete(g.dropped, gk)
	if before != nil {
		known = before.kind
		before.stop()
	}
	g.running.Go(func() { _ = k.informer.Run(ctx) }) // both end with their context, and with nothing else
	g.running.Go(func() {
		_ = afterSync(func(ctx context.Context) error {
			if known != nil {
				g.reportMissed(gk, known, k.kind)
			}
			g.enqueueOwnedBy(gk)
			return k.worker.run(ctx)
		}, slices.Concat(g.synced, []<-chan struct{}{k.informer.Synced()})...)(ctx)
	})
}

// reportMissed reports objects that went while the kind was not followed.
func (g *dynamicKinds) reportMissed(gk schema.GroupKind, before, now *kind) {
	before.informer.Each(func(key informer.Key, object owned) {
		if known, ok := now.informer.Get(key.Namespace, key.Name); !ok || known.uid != object.uid {
			g.handleChange(gk, key, &object, nil)
		}
	})
}
