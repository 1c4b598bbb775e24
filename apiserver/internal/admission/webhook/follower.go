package webhook

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/core"
)

// Follower keeps the webhooks of one kind of configuration.
type Follower struct {
	informer *informer.Informer[[]*hook]
	of       func(core.Object) []*hook

	mu     sync.Mutex // guards building the lists
	static atomic.Pointer[[]*hook]
	hooks  atomic.Pointer[[]*hook]
}

// FollowValidating follows ValidatingWebhookConfigurations.
func FollowValidating(source informer.Source, access webhookclient.Access, clock clock.Clock, logger *zap.Logger) *Follower {
	return newFollower(source, access, ofValidating, clock, logger)
}

// FollowMutating follows MutatingWebhookConfigurations.
func FollowMutating(source informer.Source, access webhookclient.Access, clock clock.Clock, logger *zap.Logger) *Follower {
	return newFollower(source, access, ofMutating, clock, logger)
}

func newFollower(source informer.Source, access webhookclient.Access, hooks func(core.Object, webhookclient.Access) []*hook,
	clock clock.Clock, logger *zap.Logger) *Follower {
	of := func(obj core.Object) []*hook { return hooks(obj, access) }
	f := &Follower{informer: informer.New(source, of, informer.Options[[]*hook]{}, clock, logger), of: of}
	f.informer.OnChange(func(_ informer.Key, old, _ *[]*hook) {
		f.rebuild()
		if old != nil {
			closeAll(*old)
		}
	})
	return f
}

// SetStatic replaces the webhooks that are configured by files. They come before all others.
func (f *Follower) SetStatic(configurations []core.Object) {
	var all []*hook
	for _, configuration := range configurations {
		all = append(all, f.of(configuration)...)
	}
	old := f.static.Swap(&all)
	f.rebuild()
	if old != nil {
		closeAll(*old)
	}
}

func closeAll(hooks []*hook) {
	for _, h := range hooks {
		h.client.Close()
	}
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) error { return f.informer.Run(ctx) }

// Synced is closed when all stored configurations are known.
func (f *Follower) Synced() <-chan struct{} { return f.informer.Synced() }

// rebuild builds the list that requests look at, ordered by configurations'
// names, and within each as it is written.
func (f *Follower) rebuild() {
	f.mu.Lock()
	defer f.mu.Unlock()
	configurations := f.informer.List()
	configurations = slices.DeleteFunc(configurations, func(hooks []*hook) bool { return len(hooks) == 0 })
	slices.SortFunc(configurations, func(a, b []*hook) int { return cmp.Compare(a[0].configuration, b[0].configuration) })
	all := slices.Concat(append([][]*hook{load(&f.static)}, configurations...)...)
	f.hooks.Store(&all)
}

// current are the webhooks as they are now.
func (f *Follower) current() []*hook { return load(&f.hooks) }

func load(hooks *atomic.Pointer[[]*hook]) []*hook {
	if all := hooks.Load(); all != nil {
		return *all
	}
	return nil
}
