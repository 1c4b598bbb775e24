package kubelet

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/firewall"
	"kctl/kubelet/internal/metrics"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/nodestats"
	"kctl/kubelet/internal/oomwatcher"
	"kctl/kubelet/internal/server"
	"kctl/kubelet/internal/volume/mount"
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
		NodeName: k.identity.NodeName, Pods: k.pods, Active: k.active.Active, Status: k.statuses.Get, Cache: k.cache,
		Workers: k.workers, Volumes: k.machinery.volumes, Relisted: k.pleg.LastRelist, Logs: k.usages.Logs, Pulls: k.machinery.imageAccess.Count,
		Protected: k.machinery.cgroups.ProtectedMemory,
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
	run("servers", func(ctx context.Context) error { return k.servers.Run(ctx, k.served(), func() { close(listening) }) })
	run("health port", func(ctx context.Context) error { return k.servers.RunHealth(ctx, k.healthChecks(), k.registry) })
	select {
	case <-listening: // the node reports the port
	case <-ctx.Done():
		return group.Wait()
	}
	k.runLoops(ctx, run)
	k.logger.Info("kubelet started",
		zap.Strings("sources", k.sources.names()), zap.String("runtime", k.health.RuntimeVersion()), zap.Int32("port", k.servers.Port()))
	daemon.Ready(k.logger)
	<-ctx.Done()
	k.workers.Stop()
	err := group.Wait()
	k.grants.record()
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
	run("volumes", k.machinery.volumes.Run)
	run("probes", k.probes.Run)
	run("garbage collection", k.collector.Run)
	run("images", k.machinery.images.Run)
	run("eviction", k.eviction.Run)
	run("logs", k.rotator.Run)
	if k.shutdown != nil {
		run("shutdown", k.shutdown.Run)
	}
	if k.config.Cgroups.PerQOS {
		run("bounds of pods", func(ctx context.Context) error { return k.boundPods(ctx, k.machinery.cgroups, k.events) })
	}
	if k.config.MakeIPTablesUtilChains && k.hollow == nil {
		guard := &firewall.Firewall{Clock: k.clock, Logger: k.logger}
		run("firewall", guard.Run)
	}
	if k.client != nil {
		run("events", k.events.recorder.Run)
		k.recordStart()
		if k.hollow == nil {
			run("machine's memory", (&oomwatcher.Watcher{Report: k.events.systemOOM, Logger: k.logger}).Run)
		}
		run("statuses", k.statuses.Run)
		run("node", k.node.Run)
		run("objects of pods", k.machinery.objects.Run)
		run("services", k.machinery.services.Run)
		run("runtime classes", k.machinery.classes.Run)
		k.runNetwork(k.client, run)
	}
	k.identity.RunRotators(k.client, k.registry, run)
	k.sources.start(ctx, func(f func() error) { run("source", func(context.Context) error { return f() }) })
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

// recordStart writes the node's events that its kubelet has started, that it holds the machine's
// daemons to what is reserved for them, what pods will not have of the node's search paths, and that
// secrets may reach a disk.
func (k *Kubelet) recordStart() {
	node := k.node.Node()
	k.events.Eventf(node, corev1.EventTypeNormal, "Starting", "Starting kubelet.")
	for _, daemons := range k.config.Allocatable.BoundDaemons() {
		k.events.Eventf(node, corev1.EventTypeNormal, "NodeAllocatableEnforced", "Updated limits on %s reserved cgroup %s",
			daemons.Whose, daemons.Group)
	}
	k.machinery.resolver.CheckNode()
	if k.hollow != nil {
		return
	}
	if swaps, err := secretsMaySwap(node, mount.NoSwap); err != nil {
		k.logger.Warn("whether secrets are kept from swap is not known", zap.Error(err))
	} else if swaps {
		k.events.nodeWarning("PossibleMemoryBackedVolumesOnDisk", "The tmpfs noswap option is not supported. Memory-backed volumes "+
			"(e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.")
	}
}

// served is what the server shows.
func (k *Kubelet) served() server.Config {
	var perPod *cgroup.Manager
	if k.config.Cgroups.PerQOS {
		perPod = k.machinery.cgroups
	}
	groups := nodestats.NewGroups(k.pods, perPod)
	return server.Config{
		Pods: k.pods, Sandboxes: k.cache.All, Status: k.statuses.Get, Runtime: k.cri,
		Health: k.healthChecks(), Metrics: k.registry, ProbeMetrics: k.metrics.Probes.Registry, Tracer: k.tracer,
		Stats: server.Stats{
			Machine:  func() corev1.NodeStatus { return k.node.Node().Status },
			Usage:    func() (node.Usage, error) { return node.ReadUsage(k.config.RootDir, k.clock.Now()) },
			Daemons:  func() map[string]cgroup.Usage { return nodestats.DaemonUsage(k.config.ContainerRuntimeEndpoint) },
			PodUsage: k.usages.Get,
			Groups:   groups.Usage, GroupDetails: groups.Details, ClassGroups: groups.ClassDetails, Interfaces: groups.Interfaces,
		},
	}
}
