package server

import (
	"context"
	"errors"

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
		"poststarthook/start-apiserver-admission-initializer", "poststarthook/generic-apiserver-start-informers",
		"poststarthook/storage-readiness",
		"poststarthook/priority-and-fairness-config-consumer", "poststarthook/priority-and-fairness-filter",
		"poststarthook/start-apiextensions-informers", "poststarthook/start-apiextensions-controllers", "poststarthook/crd-informer-synced",
		"poststarthook/start-kube-aggregator-informers", "poststarthook/apiservice-registration-controller",
		"poststarthook/apiservice-discovery-controller",
		"poststarthook/apiservice-status-local-available-controller", "poststarthook/apiservice-status-remote-available-controller",
		"poststarthook/kube-apiserver-autoregistration", "autoregister-completion",
		"poststarthook/apiservice-openapi-controller", "poststarthook/apiservice-openapiv3-controller",
	}
)

// etcdCheck checks whether etcd answers.
const etcdCheck = "etcd"

// addChecks adds the server's health checks, under upstream's names where there are
// any.
func addChecks(o *objects) {
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
	o.health.Add("log", func(context.Context) error { return nil }, everywhere...)
	o.health.Add(etcdCheck, o.database.backend.Check, everywhere...)
	o.health.Add("etcd-readiness", o.database.backend.Check, daemon.Readyz)
	o.health.Add("storage", o.checkStorage, daemon.Readyz)
	addHook := func(name string, done <-chan struct{}) {
		finished := closed(done, "not finished")
		o.health.Add(name, finished, daemon.Healthz, daemon.Readyz)
		o.health.Add(name, o.inTime(finished), daemon.Livez)
	}
	for _, hook := range storedHooks {
		addHook("poststarthook/"+hook, o.bootstrapped)
	}
	for _, hook := range followedHooks {
		addHook(hook, o.ready)
	}
	o.health.Add("informer-sync", closed(o.ready, "roles and pods have not been read yet"), daemon.Readyz)
	o.health.Add("shutdown", func(context.Context) error {
		if o.stopping.Err() != nil {
			return shutdown
		}
		return nil
	}, daemon.Readyz)
}

// inTime wraps a check so that it passes during the time that a start may take
// (--livez-grace-period).
func (p *process) inTime(check func(context.Context) error) func(context.Context) error {
	end := p.clock.Now().Add(p.options.LivezGrace)
	return func(ctx context.Context) error {
		if p.clock.Now().Before(end) {
			return nil
		}
		return check(ctx)
	}
}

// watchdog tells the service manager that the server is alive.
func (p *process) watchdog(ctx context.Context) error {
	// Restarting this server does not bring back an etcd that does not answer.
	return daemon.Watchdog(ctx, p.health, p.clock, p.logger, etcdCheck)
}
