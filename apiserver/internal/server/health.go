package server

import (
	"context"
	"errors"
	"strings"

	"kctl/proto/daemon"
)

// The start-up hooks of kube-apiserver, by the names that monitors and
// upstream's own tests look for, as far as ours does the same: storing what
// every cluster has, and following what decisions are based on.
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

// etcdCheck checks whether etcd answers.
const etcdCheck = "etcd"

// watchHealth adds the server's checks, under upstream's names where there are
// any.
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
	s.health.Add("storage", s.checkStorage, daemon.Readyz)
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

// checkStorage checks whether all resources have been read. One that is held back because
// of an object takes no server out of service: all others share the same etcd.
func (s *Server) checkStorage(context.Context) error {
	if err := s.resources.Ready(); err != nil {
		return err
	}
	if held := s.resources.HeldBack(); len(held) > 0 {
		return daemon.Remark("held back, because a stored value cannot be read: " + strings.Join(held, ", "))
	}
	return nil
}

// inTime wraps a check so that it passes during the time that a start may take
// (--livez-grace-period).
func (s *Server) inTime(check func(context.Context) error) func(context.Context) error {
	end := s.clock.Now().Add(s.options.LivezGrace)
	return func(ctx context.Context) error {
		if s.clock.Now().Before(end) {
			return nil
		}
		return check(ctx)
	}
}

// watchdog tells the service manager that the server is alive.
func (s *Server) watchdog(ctx context.Context) error {
	// Restarting this server does not bring back an etcd that does not answer.
	return daemon.Watchdog(ctx, s.health, s.clock, s.logger, etcdCheck)
}
