package kubelet

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/lifecycle"
	"kctl/proto/core"
)

// makeLifecycle creates the Lifecycle that the pod workers call.
func (k *Kubelet) makeLifecycle() {
	o := lifecycle.Options{
		RootDir: k.config.RootDir, PodLogsDir: k.config.PodLogsDir,
		Pods: k.pods, Cache: k.cache, State: k.state, Allocations: k.allocations, RecordGrants: k.recordGrants,
		Runtime: k.runtime, Cgroups: k.cgroups, Objects: k.objects, Volumes: k.volumes, ReadFile: k.volumes.ReadFile, UserIDs: k.userIDs,
		Probes: k.probes, PLEG: k.pleg, Statuses: k.statuses, Events: k.events, Mirrors: k.mirrors, Tracer: k.tracer,
		NetworkError: k.health.NetworkError, Ending: func(uid types.UID) bool { return k.workers.TerminationRequested(uid) },
		OtherPods: k.otherPods, Allocatable: k.allocatable, HostIPs: k.ownIPs, Begun: k.begun, Clock: k.clock, Logger: k.logger,
	}
	if k.hollow != nil { // simulated containers write nothing, so there is nothing to wait for
		o.Volumes, o.ReadFile = noVolumes{k.volumes, k.objects}, nil
	}
	k.lifecycle = lifecycle.New(o)
}

// begun measures how long a pod took to reach its worker.
func (k *Kubelet) begun(pod *core.Pod, seen time.Time) {
	k.metrics.ContainersPerPod.Observe(float64(len(pod.Spec.Containers)))
	if !seen.IsZero() {
		k.metrics.WorkerStart.Observe(k.clock.Since(seen).Seconds())
	}
}
