package kubelet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/exitwatch"
	"kctl/kubelet/internal/lifecycle"
	"kctl/kubelet/internal/pleg"
	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// makeWorkers creates the pod workers, with the Lifecycle that has their steps, and what they learn
// from. The steps ask how far other pods are, which the workers know.
func (k *Kubelet) makeWorkers(ctx context.Context) {
	m := k.machinery
	k.sources = k.newSources(k.client, k.node, m.state, k.events)
	k.probes = k.newProbes(k.cri, k.cache, k.pods, k.events)
	k.pleg = k.newPLEG(k.cri, m.state, k.cache)
	o := lifecycle.Options{
		RootDir: k.config.RootDir, PodLogsDir: k.config.PodLogsDir, Clock: k.clock, Logger: k.logger, Tracer: k.tracer,
		Pods: k.pods, Cache: k.cache, State: m.state, Allocations: k.allocations, RecordGrants: k.grants.record,
		Runtime: m.runtime, Cgroups: m.cgroups, Objects: m.objects, Volumes: m.volumes, ReadFile: m.volumes.ReadFile, UserIDs: m.userIDs,
		Probes: k.probes, PLEG: k.pleg, Statuses: k.statuses, Events: k.events, Mirrors: k.mirrors,
		NetworkError: k.health.NetworkError, Allocatable: allocatable(k.node), HostIPs: k.identity.HostIPs, Begun: k.begun,
		Ending:    func(uid types.UID) bool { return k.workers.TerminationRequested(uid) },
		OtherPods: func(pod *core.Pod) []*core.Pod { return k.active.Others(pod) },
	}
	if k.hollow != nil { // simulated containers write nothing, so there is nothing to wait for
		o.Volumes, o.ReadFile = noVolumes{m.volumes, m.objects}, nil
	}
	k.lifecycle = lifecycle.New(o)
	k.workers = podworker.New(ctx, k.lifecycle, podworker.Options{
		Clock:     k.clock,
		Logger:    k.logger,
		Resync:    k.config.SyncFrequency,
		Observe:   k.metrics.ObserveWork,
		Restarted: k.metrics.PodRestarted,
	})
	k.active = activepods.New(k.pods, k.workers, k.statuses, k.cache)
}

// newPLEG creates what learns of the pods' lifecycle events.
func (g *given) newPLEG(runtime *cri.Client, state *runtimestate.Reader, cache *podcache.Cache) *pleg.Generator {
	var events *pleg.Generator
	var exits pleg.Exits // simulated containers have no process
	if g.hollow == nil {
		exits = exitwatch.New(runtime, func(container string) { events.ContainerEnded(container) }, g.clock, g.logger)
	}
	events = pleg.New(pleg.Options{
		Runtime: state, Cache: cache, Clock: g.clock, Logger: g.logger, Observe: g.metrics.ObserveRelist, Exits: exits,
		Stream: &pleg.Stream{
			Open:      func(ctx context.Context) (pleg.Receiver, error) { return runtime.Events(ctx) },
			Connected: g.metrics.Streams.Inc,
			Failed:    g.metrics.StreamErrors.Inc,
			Received:  func(age time.Duration) { g.metrics.StreamLatency.Observe(age.Seconds()) },
		},
	})
	return events
}

// begun measures how long a pod took to reach its worker.
func (g *given) begun(pod *core.Pod, seen time.Time) {
	g.metrics.ContainersPerPod.Observe(float64(len(pod.Spec.Containers)))
	if !seen.IsZero() {
		g.metrics.WorkerStart.Observe(g.clock.Since(seen).Seconds())
	}
}
