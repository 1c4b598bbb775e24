package kubelet

import (
	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/synchandler"
	"kctl/kubelet/internal/syncloop"
)

// makeSyncLoop creates the sync loop and what handles what it routes.
func (k *Kubelet) makeSyncLoop() {
	k.cleaner = synchandler.NewCleaner(synchandler.CleanerOptions{
		AllHeard: k.sources.ready.All, Runtime: k.machinery.state.Pods,
		Pods: k.pods, Workers: k.workers, Active: k.active, Statuses: k.statuses, Mirrors: k.mirrors,
		Allocations: k.allocations, Probes: k.probes, Collector: k.collector, Metrics: k.metrics,
	})
	k.handler = synchandler.New(synchandler.Options{
		Admission: k.newAdmission(), Cleaner: k.cleaner, Killer: k.killer,
		Pods: k.pods, Workers: k.workers, Statuses: k.statuses, Mirrors: k.mirrors, Allocations: k.allocations,
		Events: k.events, Metrics: k.metrics, Clock: k.clock, Logger: k.logger,
	})
	k.loop = syncloop.New(syncloop.Options{
		Updates: k.sources.mux.Updates(), Lifecycle: k.pleg.Events(), Probes: k.probes.Updates(), Handler: k.handler,
		Heard: k.sources.ready.Add, RuntimeError: k.runtimeError, Clock: k.clock, Logger: k.logger,
	})
}

// newAdmission creates what decides about new pods.
func (k *Kubelet) newAdmission() *synchandler.Admission {
	o := synchandler.AdmissionOptions{
		Shutdown: k.shutdown, Eviction: k.eviction, Runtime: k.health, Node: k.node.Node,
		UnsafeSysctls: k.config.AllowedUnsafeSysctls, AppArmor: k.hollow != nil || admit.AppArmorEnforced(),
		Pods: k.pods, Active: k.active, Allocations: k.allocations, Clock: k.clock, Logger: k.logger,
		Preemption: synchandler.NewPreemption(synchandler.PreemptionOptions{
			Pods: k.pods, Workers: k.workers, Killer: k.killer, Victims: k.lifecycle, Allocatable: allocatable(k.node),
			Events: k.events, Metrics: k.metrics, Clock: k.clock, Logger: k.logger,
		}),
	}
	if k.client != nil {
		o.Reread = k.node.Reread
	}
	return synchandler.NewAdmission(o)
}

// runtimeChanged has what hangs on the runtime's health seen to at once.
func (k *Kubelet) runtimeChanged() {
	k.node.UpdateStatusSoon()
	if k.loop != nil { // not while the runtime is waited for at start
		k.loop.Wake()
	}
}

// runtimeError says why pods can't be worked on now.
func (k *Kubelet) runtimeError() error {
	if err := k.health.RuntimeError(); err != nil {
		return err
	}
	return k.pleg.Healthy()
}
