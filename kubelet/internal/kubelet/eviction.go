package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/nodestats"
	"kctl/kubelet/internal/podfiles"
	"kctl/proto/core"
)

// makeEviction makes what evicts pods, and what measures them for that and for others.
func (k *Kubelet) makeEviction() error {
	thresholds, err := k.config.Eviction.Thresholds()
	if err != nil {
		return err
	}
	machine := eviction.Machine{RootDir: k.config.RootDir, Memory: node.MemoryLeft, Processes: node.Processes, ImageFS: k.cri.ImageFsInfo}
	if k.config.Cgroups.PerQOS && k.config.Allocatable.EnforcesPods() {
		machine.PodsMemory = func() (available, capacity int64, err error) { return podsMemory(k.machinery.cgroups) }
	}
	meter := eviction.Meter{
		Stats: func(ctx context.Context) ([]*runtimeapi.ContainerStats, error) {
			return k.cri.ListContainerStats(ctx, nil)
		},
		VolumeDir: func(pod *core.Pod, volume *corev1.Volume) string { return k.machinery.volumes.Dir(pod.UID, volume) },
		LogDir: func(pod *core.Pod) string {
			return podfiles.LogDirectory(k.config.PodLogsDir, pod.Namespace, pod.Name, pod.UID)
		},
		HostsFile:  func(pod *core.Pod) string { return podfiles.HostsFile(k.config.RootDir, pod.UID) },
		MessageDir: func(pod *core.Pod, c string) string { return podfiles.MessageDir(k.config.RootDir, pod.UID, c) },
		Processes:  func(pod *core.Pod) int { return k.machinery.cgroups.Processes(pod) },
	}
	k.usages = nodestats.NewUsages(meter.Measure, k.active.Running, k.config.Serving.VolumeStatsAggPeriod, k.clock)
	k.eviction = eviction.New(eviction.Options{
		Thresholds: thresholds, IgnoreLimits: !k.config.LocalStorageCapacityIsolation,
		LongestRest: max(k.config.Serving.VolumeStatsAggPeriod, time.Minute),
		MaxPodGrace: int64(k.config.Eviction.MaxPodGracePeriod), TransitionPeriod: k.config.Eviction.TransitionPeriod,
		Observe: machine.Observe, Measure: meter.Measure, Pods: k.active.Evictable,
		Reclaim: k.evictor.Reclaim, Evict: k.evictor.Evict, Changed: k.node.UpdateStatusSoon, Warn: k.events.nodeWarning,
		Clock: k.clock, Logger: k.logger,
	})
	return nil
}
