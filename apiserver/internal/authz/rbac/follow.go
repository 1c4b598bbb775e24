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

// Follower keeps an Authorizer's policy in step with the stores.
type Follower struct {
	authorizer          *Authorizer
	changed             chan struct{}
	synced              chan struct{}
	roles               *informer.Informer[*rbacv1.Role]
	roleBindings        *informer.Informer[*rbacv1.RoleBinding]
	clusterRoles        *informer.Informer[*rbacv1.ClusterRole]
	clusterRoleBindings *informer.Informer[*rbacv1.ClusterRoleBinding]
}

// NewFollower returns a Follower that does nothing until Run.
func NewFollower(authorizer *Authorizer, s Sources, clock clock.Clock, logger *zap.Logger) *Follower {
	f := &Follower{authorizer: authorizer, changed: make(chan struct{}, 1), synced: make(chan struct{})}
	f.roles = newInformer[*rbacv1.Role](f, s.Roles, clock, logger)
	f.roleBindings = newInformer[*rbacv1.RoleBinding](f, s.RoleBindings, clock, logger)
	f.clusterRoles = newInformer[*rbacv1.ClusterRole](f, s.ClusterRoles, clock, logger)
	f.clusterRoleBindings = newInformer[*rbacv1.ClusterRoleBinding](f, s.ClusterRoleBindings, clock, logger)
	return f
}

func newInformer[T core.Object](f *Follower, source informer.Source, clock clock.Clock, logger *zap.Logger) *informer.Informer[T] {
	project := func(obj core.Object) T { return obj.(T) }
	m := informer.New(source, project, informer.Options[T]{}, clock, logger)
	m.OnChange(func(informer.Key, *T, *T) { f.requestRebuild() })
	return m
}

// requestRebuild requests a new index; many changes at once result in one.
func (f *Follower) requestRebuild() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
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
	group.Go(func() error { return f.rebuild(ctx) })
	return group.Wait()
}

func (f *Follower) rebuild(ctx context.Context) error {
	for _, synced := range []<-chan struct{}{
		f.roles.Synced(), f.roleBindings.Synced(), f.clusterRoles.Synced(), f.clusterRoleBindings.Synced(),
	} {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-synced:
		}
	}
	for first := true; ; first = false {
		f.authorizer.Set(Policy{
			Roles: f.roles.List(), RoleBindings: f.roleBindings.List(),
			ClusterRoles: f.clusterRoles.List(), ClusterRoleBindings: f.clusterRoleBindings.List(),
		})
		if first {
			close(f.synced)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.changed:
		}
	}
}
