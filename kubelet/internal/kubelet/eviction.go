package kubelet

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/podkiller"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// evictionWait is how long the node waits for an evicted pod to end before it
// looks for the next one.
const evictionWait = 30 * time.Second

func (k *Kubelet) makeEviction(thresholds []eviction.Threshold) {
	machine := eviction.Machine{RootDir: k.config.RootDir, Memory: node.MemoryLeft, Processes: node.Processes, ImageFS: k.cri.ImageFsInfo}
	if k.config.CgroupsPerQOS && k.config.EnforcesPods() {
		machine.PodsMemory = k.podsMemory
	}
	meter := eviction.Meter{
		Stats: func(ctx context.Context) ([]*runtimeapi.ContainerStats, error) {
			return k.cri.ListContainerStats(ctx, nil)
		},
		VolumeDir: func(pod *core.Pod, volume *corev1.Volume) string { return k.volumes.Dir(pod.UID, volume) },
		LogDir: func(pod *core.Pod) string {
			return podfiles.LogDirectory(k.config.PodLogsDir, pod.Namespace, pod.Name, pod.UID)
		},
		HostsFile:  func(pod *core.Pod) string { return podfiles.HostsFile(k.config.RootDir, pod.UID) },
		MessageDir: func(pod *core.Pod, c string) string { return podfiles.MessageDir(k.config.RootDir, pod.UID, c) },
		Processes:  func(pod *core.Pod) int { return k.cgroups.Processes(pod) },
	}
	running := func() []*core.Pod { return k.active.Running() }
	k.usages = &usages{measure: meter.Measure, pods: running, every: k.config.VolumeStatsAggPeriod, clock: k.clock}
	k.eviction = eviction.New(eviction.Options{
		Thresholds: thresholds, MaxPodGrace: int64(k.config.Eviction.MaxPodGracePeriod), TransitionPeriod: k.config.Eviction.TransitionPeriod, IgnoreLimits: !k.config.LocalStorageCapacityIsolation,
		Observe: machine.Observe, Measure: meter.Measure, Pods: running, Reclaim: k.reclaimDisk, Evict: k.evict,
		Changed: func() { k.node.UpdateStatusSoon() }, Warn: k.nodeWarning, Clock: k.clock, Logger: k.logger,
	})
}

// reclaimDisk removes what ended containers left, and then unused images. If
// some of the former can't be removed, the images are removed all the same;
// otherwise pods would be evicted. They stay if they are on another disk.
func (k *Kubelet) reclaimDisk(ctx context.Context, images bool) error {
	err := k.collector.Reclaim(ctx)
	if images {
		err = errors.Join(err, k.images.FreeAll(ctx))
	}
	return err
}

// evict ends a pod, waits for its end for a while, and removes what its containers
// have written: otherwise the node would still be short, and evict others.
func (k *Kubelet) evict(ctx context.Context, pod *core.Pod, v eviction.Decision) {
	k.logger.Warn("pod evicted", daemon.PodFields(pod), zap.String("message", v.Message))
	k.events.annotated(pod, v.Offenders.Annotations(), corev1.EventTypeWarning, podkiller.Evicted, v.Message)
	k.metrics.Evictions.WithLabelValues(v.Signal).Inc()
	done := make(chan struct{})
	end := podkiller.Termination{Reason: podkiller.Evicted, Message: v.Message, Disrupted: v.Message, Grace: &v.Grace, Done: done}
	if v.Limit {
		end.Disrupted = ""
	}
	k.killer.Terminate(pod, end)
	timer := k.clock.NewTimer(evictionWait)
	defer timer.Stop()
	select {
	case <-done:
		if err := k.collector.CollectPod(ctx, pod.UID); err != nil && ctx.Err() == nil {
			k.logger.Warn("not everything that an evicted pod left behind could be removed", daemon.PodFields(pod), zap.Error(err))
		}
	case <-timer.C():
	case <-ctx.Done():
	}
}
