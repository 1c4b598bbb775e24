package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"kctl/kubelet/internal/firewall"
	"kctl/kubelet/internal/metrics"
	"kctl/proto/daemon"
)

// Run runs the kubelet until ctx ends. Containers are left running.
//
// The server starts first, because the node reports its port; then everything that
// pods need from this machine, then what reports about them to the API, and last
// what brings pods: the sources and the sync loop. All loops end with ctx, and so do
// the workers with their current steps. Background work is waited for last, when
// nothing is left that could start more.
func (k *Kubelet) Run(ctx context.Context) error {
	defer k.cri.Close()
	defer func() {
		if err := k.tracer.Close(); err != nil {
			k.logger.Warn("spans are lost", zap.Error(err))
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	metrics.RegisterPopulation(k.registry, metrics.Sources{
		NodeName: k.nodeName, Pods: k.pods, Active: k.active.Active, Cache: k.cache, Workers: k.workers, Volumes: k.volumes, Relisted: k.pleg.LastRelist, Logs: k.usages.logs, Pulls: k.imageAccess.Count,
	})
	run := func(name string, f func(context.Context) error) {
		group.Go(func() error {
			if err := f(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	listening := make(chan struct{})
	run("servers", func(ctx context.Context) error { return k.serve(ctx, func() { close(listening) }) })
	run("health port", k.serveHealth)
	select {
	case <-listening: // the node reports the port
	case <-ctx.Done():
		return group.Wait()
	}
	k.runLoops(ctx, run)
	k.logger.Info("kubelet started", zap.Strings("sources", k.sources()), zap.String("runtime", k.health.RuntimeVersion()), zap.Int32("port", k.port.Load()))
	daemon.Ready(k.logger)
	<-ctx.Done()
	k.workers.Stop()
	err := group.Wait()
	k.recordGrants()
	k.cleaner.Wait()
	k.mirrors.Wait()
	k.logger.Info("kubelet stopped; containers are left as they are")
	return err
}

// runLoops runs the loops of all rooms but the server's.
func (k *Kubelet) runLoops(ctx context.Context, run func(name string, f func(context.Context) error)) {
	if k.grants != nil {
		run("grants", k.grants.Run)
	}
	run("runtime health", k.health.Run)
	run("lifecycle events", k.pleg.Run)
	run("volumes", k.volumes.Run)
	run("probes", k.probes.Run)
	run("garbage collection", k.collector.Run)
	run("images", k.images.Run)
	run("eviction", k.eviction.Run)
	run("logs", k.rotator.Run)
	if k.shutdown != nil {
		run("shutdown", k.shutdown.Run)
	}
	if k.config.CgroupsPerQOS {
		run("bounds of pods", k.boundPods)
	}
	if k.config.MakeIPTablesUtilChains && k.hollow == nil {
		guard := &firewall.Firewall{Clock: k.clock, Logger: k.logger}
		run("firewall", guard.Run)
	}
	if k.client != nil {
		run("events", k.events.recorder.Run)
		k.recordStart()
		run("statuses", k.statuses.Run)
		run("node", k.node.Run)
		k.runNetwork(run)
	}
	k.runRotators(run)
	k.runSources(ctx, func(f func() error) { run("source", func(context.Context) error { return f() }) })
	run("sync loop", k.loop.Run)
	run("watchdog", func(ctx context.Context) error { return daemon.Watchdog(ctx, k.healthChecks(), k.clock, k.logger) })
}

// healthChecks are what the health endpoints ask.
func (k *Kubelet) healthChecks() *daemon.Health {
	health := daemon.NewHealth()
	health.Add("log", func(context.Context) error { return nil }, daemon.Healthz, daemon.Livez, daemon.Readyz)
	health.Add("syncloop", func(context.Context) error { return k.loop.Healthy() }, daemon.Healthz, daemon.Livez, daemon.Readyz)
	health.Add("pleg", func(context.Context) error { return k.pleg.Healthy() })
	health.Add("runtime", func(context.Context) error { return k.health.RuntimeError() }, daemon.Readyz)
	return health
}

func (k *Kubelet) serveHealth(ctx context.Context) error {
	if k.config.HealthzPort == 0 {
		return nil
	}
	address := net.JoinHostPort(k.config.HealthzAddress, fmt.Sprint(k.config.HealthzPort))
	listener := daemon.Listener{Address: address, Handler: daemon.Endpoints(k.healthChecks(), k.registry), Logger: k.logger}
	return listener.Serve(ctx)
}
