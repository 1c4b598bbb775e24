package policy

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
)

// Follower keeps the policies of one kind with their bindings. It is safe for
// concurrent use.
type Follower struct {
	policies *informer.Informer[*policy]
	bindings *informer.Informer[*binding]
	synced   chan struct{}

	mu    sync.Mutex // guards building the list
	bound atomic.Pointer[[]boundPolicy]
}

// boundPolicy is a policy with at least one binding.
type boundPolicy struct {
	*policy
	bindings []*binding
}

// FollowValidating follows ValidatingAdmissionPolicies and their bindings.
func FollowValidating(policies, bindings informer.Source, clock clock.Clock, logger *zap.Logger) *Follower {
	return newFollower(
		informer.New(policies, ofValidating, informer.Options[*policy]{}, clock, logger),
		informer.New(bindings, ofValidatingBinding, informer.Options[*binding]{Index: policyOf}, clock, logger))
}

// FollowMutating follows MutatingAdmissionPolicies and their bindings.
func FollowMutating(policies, bindings informer.Source, clock clock.Clock, logger *zap.Logger) *Follower {
	return newFollower(
		informer.New(policies, ofMutating, informer.Options[*policy]{}, clock, logger),
		informer.New(bindings, ofMutatingBinding, informer.Options[*binding]{Index: policyOf}, clock, logger))
}

func policyOf(b *binding) string { return b.policy }

func newFollower(policies *informer.Informer[*policy], bindings *informer.Informer[*binding]) *Follower {
	f := &Follower{policies: policies, bindings: bindings, synced: make(chan struct{})}
	policies.OnChange(func(informer.Key, **policy, **policy) { f.rebuild() })
	bindings.OnChange(func(informer.Key, **binding, **binding) { f.rebuild() })
	return f
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return f.policies.Run(ctx) })
	running.Go(func() error { return f.bindings.Run(ctx) })
	running.Go(func() error {
		for _, synced := range []<-chan struct{}{f.policies.Synced(), f.bindings.Synced()} {
			select {
			case <-synced:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		close(f.synced)
		return nil
	})
	return running.Wait()
}

// Synced is closed when everything stored is known.
func (f *Follower) Synced() <-chan struct{} { return f.synced }

// rebuild builds the list that requests look at, ordered by name. Both informers
// call it; the last call has seen the most.
func (f *Follower) rebuild() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []boundPolicy
	for _, p := range f.policies.List() {
		bindings := f.bindings.ByIndex(p.name)
		if len(bindings) == 0 {
			continue
		}
		slices.SortFunc(bindings, func(a, b *binding) int { return cmp.Compare(a.name, b.name) })
		all = append(all, boundPolicy{p, bindings})
	}
	slices.SortFunc(all, func(a, b boundPolicy) int { return cmp.Compare(a.name, b.name) })
	f.bound.Store(&all)
}

// current are the policies as they are now.
func (f *Follower) current() []boundPolicy {
	if all := f.bound.Load(); all != nil {
		return *all
	}
	return nil
}
