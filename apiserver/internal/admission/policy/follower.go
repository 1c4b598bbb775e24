package policy

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/proto/core"
)

// Follower keeps the policies of one kind with their bindings. It is safe for
// concurrent use.
type Follower struct {
	policies *informer.Informer[*policy]
	bindings *informer.Informer[*binding]
	synced   chan struct{}

	// ofPolicy and ofBinding are for those that are not stored.
	ofPolicy  func(core.Object) *policy
	ofBinding func(core.Object) *binding

	mu     sync.Mutex // guards building the lists
	static atomic.Pointer[[]boundPolicy]
	bound  atomic.Pointer[[]boundPolicy]
}

// boundPolicy is a policy with at least one binding.
type boundPolicy struct {
	*policy
	bindings []*binding
}

// FollowValidating follows ValidatingAdmissionPolicies and their bindings.
func FollowValidating(policies, bindings informer.Source, clock clock.Clock, logger *zap.Logger) *Follower {
	return newFollower(policies, bindings, ofValidating, ofValidatingBinding, clock, logger)
}

// FollowMutating follows MutatingAdmissionPolicies and their bindings.
func FollowMutating(policies, bindings informer.Source, clock clock.Clock, logger *zap.Logger) *Follower {
	return newFollower(policies, bindings, ofMutating, ofMutatingBinding, clock, logger)
}

func policyOf(b *binding) string { return b.policy }

func newFollower(policies, bindings informer.Source, ofPolicy func(core.Object) *policy, ofBinding func(core.Object) *binding,
	clock clock.Clock, logger *zap.Logger) *Follower {
	f := &Follower{
		policies: informer.New(policies, ofPolicy, informer.Options[*policy]{}, clock, logger),
		bindings: informer.New(bindings, ofBinding, informer.Options[*binding]{Index: policyOf}, clock, logger),
		ofPolicy: ofPolicy, ofBinding: ofBinding, synced: make(chan struct{}),
	}
	f.policies.OnChange(func(informer.Key, **policy, **policy) { f.rebuild() })
	f.bindings.OnChange(func(informer.Key, **binding, **binding) { f.rebuild() })
	return f
}

// SetStatic replaces the policies and bindings that are configured by files. They come
// before all others.
func (f *Follower) SetStatic(objects []core.Object) {
	bindings := map[string][]*binding{}
	for _, obj := range objects {
		switch obj.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			b := f.ofBinding(obj)
			bindings[b.policy] = append(bindings[b.policy], b)
		}
	}
	all := []boundPolicy{}
	for _, obj := range objects {
		switch obj.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicy:
			if of := bindings[obj.GetName()]; len(of) > 0 {
				all = append(all, boundPolicy{f.ofPolicy(obj), of})
			}
		}
	}
	f.static.Store(&all)
	f.rebuild()
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
	all = slices.Concat(load(&f.static), all)
	f.bound.Store(&all)
}

// current are the policies as they are now.
func (f *Follower) current() []boundPolicy { return load(&f.bound) }

func load(policies *atomic.Pointer[[]boundPolicy]) []boundPolicy {
	if all := policies.Load(); all != nil {
		return *all
	}
	return nil
}
