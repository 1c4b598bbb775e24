package webhook

import (
	"cmp"
	"context"
	"slices"
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
	hooks    atomic.Pointer[[]*hook]
}

// FollowValidating follows ValidatingWebhookConfigurations.
func FollowValidating(source informer.Source, services webhookclient.Services, clock clock.Clock, logger *zap.Logger) *Follower {
	return newFollower(source, services, ofValidating, clock, logger)
}

// FollowMutating follows MutatingWebhookConfigurations.
func FollowMutating(source informer.Source, services webhookclient.Services, clock clock.Clock, logger *zap.Logger) *Follower {
	return newFollower(source, services, ofMutating, clock, logger)
}

func newFollower(source informer.Source, services webhookclient.Services, hooks func(core.Object, webhookclient.Services) []*hook, clock clock.Clock, logger *zap.Logger) *Follower {
	of := func(obj core.Object) []*hook { return hooks(obj, services) }
	f := &Follower{informer: informer.New(source, of, informer.Options[[]*hook]{}, clock, logger)}
	f.informer.OnChange(f.rebuild)
	return f
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) error { return f.informer.Run(ctx) }

// Synced is closed when all stored configurations are known.
func (f *Follower) Synced() <-chan struct{} { return f.informer.Synced() }

// rebuild builds the list that requests look at, ordered by configurations'
// names, and within each as it is written.
func (f *Follower) rebuild(_ informer.Key, old, _ *[]*hook) {
	configurations := f.informer.List()
	configurations = slices.DeleteFunc(configurations, func(hooks []*hook) bool { return len(hooks) == 0 })
	slices.SortFunc(configurations, func(a, b []*hook) int { return cmp.Compare(a[0].configuration, b[0].configuration) })
	all := slices.Concat(configurations...)
	f.hooks.Store(&all)
	if old == nil {
		return
	}
	for _, h := range *old {
		h.client.Close()
	}
}

// current are the webhooks as they are now.
func (f *Follower) current() []*hook {
	hooks := f.hooks.Load()
	if hooks == nil {
		return nil
	}
	return *hooks
}
