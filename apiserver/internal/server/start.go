package server

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/authz/rbac/bootstrap"
	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/gcpace"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/resources/flowcontrol"
	"kctl/apiserver/internal/resources/priorityclass"
	"kctl/apiserver/internal/server/authentication"
	"kctl/proto/backoff"
	"kctl/proto/daemon"
	"kctl/proto/relay"
)

// startPolicy spaces out attempts to store what every cluster has.
var startPolicy = backoff.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second, Jitter: 0.2}

// start stores what every cluster has, and opens the door when all that
// decisions are based on has been read.
func (s *Server) start(ctx context.Context) error {
	if err := s.backend.Wait(ctx); err != nil {
		return err
	}
	if err := s.resources.WaitReady(ctx); err != nil {
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
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.clock.After(startPolicy.Delay(failures)):
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

// synced are closed when all that decisions are based on has been read.
func (s *Server) synced() []<-chan struct{} {
	synced := []<-chan struct{}{s.rules.Synced(), s.pods.Synced(), s.aggregator.Synced()}
	if s.fairness != nil {
		synced = append(synced, s.fairness.Applied())
	}
	return append(synced, s.admission.Synced()...)
}

// bootstrap stores what every cluster has, as far as it is not there.
func (s *Server) bootstrap(ctx context.Context) error {
	if err := housekeeping.BootstrapNamespaces(ctx, s.resources.Namespaces); err != nil {
		return err
	}
	if err := priorityclass.Bootstrap(ctx, s.resources.PriorityClasses); err != nil {
		return err
	}
	if err := s.bootstrapKinds(ctx); err != nil {
		return err
	}
	if err := s.aggregator.Bootstrap(ctx, s.builtin); err != nil {
		return err
	}
	if err := s.bootstrapService(ctx); err != nil && !forOperators(err) { // keepOwnService tells
		return err
	}
	return bootstrap.Reconcile(ctx, bootstrap.Stores{
		Roles: s.resources.Roles, RoleBindings: s.resources.RoleBindings,
		ClusterRoles: s.resources.ClusterRoles, ClusterRoleBindings: s.resources.ClusterRoleBindings,
	})
}

// What kube-apiserver does when it starts, by the names under which monitors and
// upstream's own tests look for it, as far as ours does the same: what is stored
// in every cluster, and what is followed from then on.
var (
	storedHooks = []string{
		"rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes", "priority-and-fairness-config-producer",
		"start-system-namespaces-controller", "start-cluster-authentication-info-controller", "bootstrap-controller",
		"start-kubernetes-service-cidr-controller", "start-service-ip-repair-controllers", "start-legacy-token-tracking-controller",
	}
	followedHooks = []string{
		"poststarthook/start-apiserver-admission-initializer", "poststarthook/generic-apiserver-start-informers", "poststarthook/storage-readiness",
		"poststarthook/priority-and-fairness-config-consumer", "poststarthook/priority-and-fairness-filter",
		"poststarthook/start-apiextensions-informers", "poststarthook/start-apiextensions-controllers", "poststarthook/crd-informer-synced",
		"poststarthook/start-kube-aggregator-informers", "poststarthook/apiservice-registration-controller", "poststarthook/apiservice-discovery-controller",
		"poststarthook/apiservice-status-local-available-controller", "poststarthook/apiservice-status-remote-available-controller",
		"poststarthook/kube-apiserver-autoregistration", "autoregister-completion",
		"poststarthook/apiservice-openapi-controller", "poststarthook/apiservice-openapiv3-controller",
	}
)

// etcdCheck is whether etcd answers.
const etcdCheck = "etcd"

// watchHealth adds the server's checks, under upstream's names where it has
// the same.
func (s *Server) watchHealth() {
	closed := func(c <-chan struct{}, otherwise string) func(context.Context) error {
		problem := errors.New(otherwise)
		return func(context.Context) error {
			select {
			case <-c:
				return nil
			default:
				return problem
			}
		}
	}
	shutdown := errors.New("the server is shutting down")
	everywhere := []string{daemon.Healthz, daemon.Livez, daemon.Readyz}
	s.health.Add("log", func(context.Context) error { return nil }, everywhere...)
	s.health.Add(etcdCheck, s.backend.Check, everywhere...)
	s.health.Add("etcd-readiness", s.backend.Check, daemon.Readyz)
	s.health.Add("storage", func(context.Context) error { return s.resources.Ready() }, daemon.Readyz)
	addHook := func(name string, done <-chan struct{}) {
		finished := closed(done, "not finished")
		s.health.Add(name, finished, daemon.Healthz, daemon.Readyz)
		s.health.Add(name, s.inTime(finished), daemon.Livez)
	}
	for _, hook := range storedHooks {
		addHook("poststarthook/"+hook, s.bootstrapped)
	}
	for _, hook := range followedHooks {
		addHook(hook, s.ready)
	}
	s.health.Add("informer-sync", closed(s.ready, "roles and pods have not been read yet"), daemon.Readyz)
	s.health.Add("shutdown", func(context.Context) error {
		if s.stopping.Err() != nil {
			return shutdown
		}
		return nil
	}, daemon.Readyz)
}

// inTime is a check that holds for the time that a start may take, whatever it
// says (--livez-grace-period).
func (s *Server) inTime(check func(context.Context) error) func(context.Context) error {
	end := s.clock.Now().Add(s.options.LivezGrace)
	return func(ctx context.Context) error {
		if s.clock.Now().Before(end) {
			return nil
		}
		return check(ctx)
	}
}

// traceChange notes when pods come by on the watch: new ones, and those that
// have come to run.
func (s *Server) traceChange(key facts.Key, old, now *facts.Pod) {
	if now == nil {
		return
	}
	select {
	case <-s.pods.Synced():
	default:
		return // what was stored before this server started
	}
	at := s.clock.Now()
	if old == nil || old.UID != now.UID {
		s.ring.Add(key.Namespace, key.Name, string(now.UID), relay.Stamp{Hop: relay.ServerWatched, At: at})
	}
	if now.Phase == corev1.PodRunning && (old == nil || old.Phase != corev1.PodRunning) {
		s.ring.Add(key.Namespace, key.Name, string(now.UID), relay.Stamp{Hop: relay.ServerStatusRunning, At: at})
	}
}

// watchdog tells the service manager that the server is alive.
func (s *Server) watchdog(ctx context.Context) error {
	// An etcd that is silent does not come back by our being started again.
	return daemon.Watchdog(ctx, s.health, s.clock, s.logger, etcdCheck)
}

// bootstrapKinds makes the objects that every cluster has of kinds that the
// server itself does not decide by.
func (s *Server) bootstrapKinds(ctx context.Context) error {
	if err := authentication.TrackTokens(ctx, s.resources.ConfigMaps, s.clock); err != nil {
		return err
	}
	return flowcontrol.Bootstrap(ctx, s.resources.FlowSchemas, s.resources.PriorityLevels)
}
