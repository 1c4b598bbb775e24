package rbac

import (
	"context"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/proto/core"
)

// Sources are the stores of the RBAC kinds.
type Sources struct {
	Roles, RoleBindings, ClusterRoles, ClusterRoleBindings informer.Source
}

// Follower keeps an Authorizer's policy in step with the stores, object by object: rules only ever
// add rights, so that a part of the policy grants nothing that the whole does not.
type Follower struct {
	synced              chan struct{}
	roles               *informer.Informer[*rbacv1.Role]
	roleBindings        *informer.Informer[*rbacv1.RoleBinding]
	clusterRoles        *informer.Informer[*rbacv1.ClusterRole]
	clusterRoleBindings *informer.Informer[*rbacv1.ClusterRoleBinding]
}

// NewFollower returns a Follower that does nothing until Run.
func NewFollower(authorizer *Authorizer, s Sources, clock clock.Clock, logger *zap.Logger) *Follower {
	return &Follower{
		synced:              make(chan struct{}),
		roles:               newInformer(authorizer, s.Roles, (*index).role, clock, logger),
		roleBindings:        newInformer(authorizer, s.RoleBindings, (*index).roleBinding, clock, logger),
		clusterRoles:        newInformer(authorizer, s.ClusterRoles, (*index).clusterRole, clock, logger),
		clusterRoleBindings: newInformer(authorizer, s.ClusterRoleBindings, (*index).clusterRoleBinding, clock, logger),
	}
}

func newInformer[T core.Object](a *Authorizer, source informer.Source, set func(x *index, obj T, there bool), clock clock.Clock,
	logger *zap.Logger) *informer.Informer[T] {
	project := func(obj core.Object) T { return obj.(T) }
	m := informer.New(source, project, informer.Options[T]{}, clock, logger)
	m.OnChange(func(_ informer.Key, old, now *T) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if old != nil {
			set(a.index, *old, false)
		}
		if now != nil {
			set(a.index, *now, true)
		}
	})
	return m
}

// Synced is closed once the authorizer has everything that is stored.
func (f *Follower) Synced() <-chan struct{} { return f.synced }

// Run follows the stores until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.roles.Run(ctx) })
	group.Go(func() error { return f.roleBindings.Run(ctx) })
	group.Go(func() error { return f.clusterRoles.Run(ctx) })
	group.Go(func() error { return f.clusterRoleBindings.Run(ctx) })
	group.Go(func() error { return f.reportSynced(ctx) })
	return group.Wait()
}

func (f *Follower) reportSynced(ctx context.Context) error {
	for _, synced := range []<-chan struct{}{
		f.roles.Synced(), f.roleBindings.Synced(), f.clusterRoles.Synced(), f.clusterRoleBindings.Synced(),
	} {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-synced:
		}
	}
	close(f.synced)
	return nil
}
