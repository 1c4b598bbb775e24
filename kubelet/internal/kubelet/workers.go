package kubelet

import (
	"context"

	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/lifecycle"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/synchandler"
	"kctl/kubelet/internal/syncloop"
	"kctl/proto/core"
)

// makeWorkers creates the pod workers with the Lifecycle that they call, whose steps ask how far
// other pods are, and those who decide by that.
func (k *Kubelet) makeWorkers(ctx context.Context) {
	o := lifecycle.Options{
		RootDir: k.config.RootDir, PodLogsDir: k.config.PodLogsDir,
		Pods: k.pods, Cache: k.cache, State: k.state, Allocations: k.allocations, RecordGrants: k.recordGrants,
		Runtime: k.runtime, Cgroups: k.cgroups, Objects: k.objects, Volumes: k.volumes, ReadFile: k.volumes.ReadFile, UserIDs: k.userIDs,
		Probes: k.probes, PLEG: k.pleg, Statuses: k.statuses, Events: k.events, Mirrors: k.mirrors, Tracer: k.tracer,
		NetworkError: k.health.NetworkError, Ending: func(uid types.UID) bool { return k.workers.TerminationRequested(uid) },
		OtherPods: func(pod *core.Pod) []*core.Pod { return k.active.Others(pod) }, Allocatable: k.allocatable, HostIPs: k.ownIPs, Begun: k.begun, Clock: k.clock, Logger: k.logger,
	}
	if k.hollow != nil { // simulated containers write nothing, so there is nothing to wait for
		o.Volumes, o.ReadFile = noVolumes{k.volumes, k.objects}, nil
	}
	k.lifecycle = lifecycle.New(o)
	k.workers = podworker.New(ctx, k.lifecycle, podworker.Options{Clock: k.clock, Logger: k.logger, Resync: k.config.SyncFrequency, Observe: k.metrics.ObserveWork, Restarted: k.metrics.PodRestarted})
	k.active = activepods.New(k.pods, k.workers, k.statuses, k.cache)
	k.killer = podkiller.New(k.workers, k.mirrors, k.clock)
}

// makeSyncLoop creates the sync loop and what handles what it routes.
func (k *Kubelet) makeSyncLoop() {
	k.cleaner = synchandler.NewCleaner(synchandler.CleanerOptions{
		AllHeard: k.ready.All, Runtime: k.state.Pods, Pods: k.pods, Workers: k.workers, Active: k.active, Statuses: k.statuses,
		Allocations: k.allocations, Mirrors: k.mirrors, Probes: k.probes, Collector: k.collector, Metrics: k.metrics,
	})
	preemption := synchandler.NewPreemption(synchandler.PreemptionOptions{
		Pods: k.pods, Workers: k.workers, Killer: k.killer, Victims: k.lifecycle, Allocatable: k.allocatable,
		Events: k.events, Metrics: k.metrics, Clock: k.clock, Logger: k.logger,
	})
	admission := synchandler.AdmissionOptions{
		Shutdown: k.shutdown, Eviction: k.eviction, Runtime: k.health, Node: k.node.Node, UnsafeSysctls: k.config.AllowedUnsafeSysctls, AppArmor: k.appArmor,
		Pods: k.pods, Active: k.active, Allocations: k.allocations, Preemption: preemption, Clock: k.clock, Logger: k.logger,
	}
	if k.client != nil {
		admission.Reread = k.node.Reread
	}
	k.handler = synchandler.New(synchandler.Options{
		Admission: synchandler.NewAdmission(admission), Cleaner: k.cleaner, Killer: k.killer, Pods: k.pods, Workers: k.workers,
		Statuses: k.statuses, Mirrors: k.mirrors, Allocations: k.allocations, Events: k.events, Metrics: k.metrics, Clock: k.clock, Logger: k.logger,
	})
	k.loop = syncloop.New(syncloop.Options{
		Updates: k.mux.Updates(), Lifecycle: k.pleg.Events(), Probes: k.probes.Updates(), Handler: k.handler, Heard: k.ready.Add,
		RuntimeError: k.runtimeError, Clock: k.clock, Logger: k.logger,
	})
}

// begun measures how long a pod took to reach its worker.
func (k *Kubelet) begun(pod *core.Pod, seen time.Time) {
	k.metrics.ContainersPerPod.Observe(float64(len(pod.Spec.Containers)))
	if !seen.IsZero() {
		k.metrics.WorkerStart.Observe(k.clock.Since(seen).Seconds())
	}
}
