package objects

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/proto/watch"
)

// run watches everything that is kept, until ctx ends.
func (c *cache[T]) run(ctx context.Context) {
	c.mu.Lock()
	c.watching = ctx
	for name, e := range c.entries {
		c.watch(name, e)
	}
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	c.watching = nil
	c.mu.Unlock()
	c.watches.Wait()
}

// watch starts an entry's watch, if there are to be any. c.mu is held.
func (c *cache[T]) watch(name types.NamespacedName, e *entry[T]) {
	if c.watching == nil {
		return
	}
	ctx, end := context.WithCancel(c.watching)
	e.endWatch = end
	follower := &follower[T]{cache: c, entry: e, wanted: e.wanted}
	c.watches.Go(func() {
		defer end()
		follower.follow(ctx, name)
	})
}

// unwatch ends the entry's watch.
func (e *entry[T]) unwatch() {
	if e.endWatch != nil {
		e.endWatch()
	}
}

// follower takes what a watch brings into an entry.
type follower[T core.Object] struct {
	cache  *cache[T]
	entry  *entry[T]
	wanted int // entry.wanted before the first list
}

// follow watches the object until ctx ends. The first request is shared with the pod that
// is started: it waits until a node authorizer knows the pod, and may tell that the object
// is immutable. Then pull secrets are also there before an outage.
func (f *follower[T]) follow(ctx context.Context, name types.NamespacedName) {
	c := f.cache
	if object, err := c.Get(ctx, name); err == nil && c.immutable(object) {
		return
	}
	_ = watch.NewReflector(c.client.Resource(c.resource, name.Namespace), c.create, f, watch.Options{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name.Name).String(),
		FewEvents:     true,
		Clock:         c.clock,
		Logger:        c.logger,
	}).Run(ctx)
}

// Replace implements watch.Sink.
func (f *follower[T]) Replace(items []T) {
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	e := f.entry
	e.watched, e.held = true, max(e.held, f.wanted)
	if e.has && (len(items) == 0 || core.Older(items[0], e.value)) {
		e.wanted++ // a request may have been quicker than the list; or etcd was restored from a backup
	}
	if len(items) == 0 {
		e.lose()
		return
	}
	f.take(items[0])
}

// Apply implements watch.Sink.
func (f *follower[T]) Apply(t watch.Type, object T) {
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	switch e := f.entry; {
	case e.has && core.Older(object, e.value): // a request was quicker than the watch
	case t == watch.Deleted:
		e.lose()
	default:
		f.take(object)
	}
}

// Get implements watch.Keeper.
func (f *follower[T]) Get(string, string) (T, bool) {
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	return f.entry.value, f.entry.has
}

// take keeps the object, and stops watching if it can't change.
func (f *follower[T]) take(object T) {
	e := f.entry
	e.has, e.value, e.at = true, object, f.cache.clock.Now()
	if f.cache.immutable(object) {
		e.watched = false // nobody tells if another is made under its name
		e.unwatch()
	}
}
