package server

import (
	"context"
	"time"

	"go.uber.org/zap"

	authnchain "kctl/apiserver/internal/authn/chain"
	"kctl/apiserver/internal/authz/rbac/bootstrap"
	"kctl/apiserver/internal/gcpace"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/resources/flowcontrol"
	"kctl/apiserver/internal/resources/priorityclass"
	"kctl/proto/backoff"
	"kctl/proto/daemon"
)

// startPolicy is the back-off between attempts to store what every cluster has.
var startPolicy = backoff.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second, Jitter: 0.2}

// start stores what every cluster has, and lets requests in once everything
// that decisions are based on has been read.
func (s *Server) start(ctx context.Context) error {
	if err := s.database.backend.Wait(ctx); err != nil {
		return err
	}
	if err := s.objects.resources.WaitReady(ctx); err != nil {
		return err
	}
	for failures := 1; ; failures++ {
		err := s.bootstrap(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.logger.Warn("what every cluster has is not all stored yet, trying again", zap.Error(err))
		if err := backoff.Sleep(ctx, s.clock, startPolicy.Delay(failures)); err != nil {
			return err
		}
	}
	close(s.bootstrapped)
	for _, synced := range s.synced() {
		if !wait(ctx, synced) {
			return ctx.Err()
		}
	}
	close(s.ready)
	s.logger.Info("ready")
	daemon.Ready(s.logger)
	gcpace.Started()
	return nil
}

// synced are closed when everything that decisions are based on has been read.
func (s *Server) synced() []<-chan struct{} {
	synced := []<-chan struct{}{s.access.rules.Synced(), s.access.pods.Synced(), s.objects.aggregator.Synced()}
	if s.policy.fairness != nil {
		synced = append(synced, s.policy.fairness.Applied())
	}
	return append(synced, s.policy.admission.Synced()...)
}

// bootstrap stores the objects that every cluster has, if they don't exist.
func (s *Server) bootstrap(ctx context.Context) error {
	if err := housekeeping.BootstrapNamespaces(ctx, s.objects.resources.Namespaces); err != nil {
		return err
	}
	if err := priorityclass.Bootstrap(ctx, s.objects.resources.PriorityClasses); err != nil {
		return err
	}
	if err := s.objects.bootstrapKinds(ctx); err != nil {
		return err
	}
	if err := s.objects.aggregator.Bootstrap(ctx, s.surface.builtin); err != nil {
		return err
	}
	if err := s.presence.bootstrapService(ctx); err != nil && !forOperators(err) { // keepOwnService reports it
		return err
	}
	return bootstrap.Reconcile(ctx, bootstrap.Stores{
		Roles: s.objects.resources.Roles, RoleBindings: s.objects.resources.RoleBindings,
		ClusterRoles: s.objects.resources.ClusterRoles, ClusterRoleBindings: s.objects.resources.ClusterRoleBindings,
	})
}

// bootstrapKinds creates the objects that every cluster has of kinds on which
// the server's own decisions do not depend.
func (o *objects) bootstrapKinds(ctx context.Context) error {
	if err := authnchain.TrackTokens(ctx, o.resources.ConfigMaps, o.clock); err != nil {
		return err
	}
	return flowcontrol.Bootstrap(ctx, o.resources.FlowSchemas, o.resources.PriorityLevels)
}
