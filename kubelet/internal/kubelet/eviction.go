package kubelet

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// evicted is the reason of pods that the node ends or refuses because it is
// short of something.
const evicted = "Evicted"

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
	k.usages = &usages{measure: meter.Measure, pods: k.running, every: k.config.VolumeStatsAggPeriod, clock: k.clock}
	k.eviction = eviction.New(eviction.Options{
		Thresholds: thresholds, MaxPodGrace: int64(k.config.Eviction.MaxPodGracePeriod), TransitionPeriod: k.config.Eviction.TransitionPeriod, IgnoreLimits: !k.config.LocalStorageCapacityIsolation,
		Observe: machine.Observe, Measure: meter.Measure, Pods: k.running, Reclaim: k.reclaimDisk, Evict: k.evict,
		Changed: func() { k.node.UpdateStatusSoon() }, Warn: k.nodeWarning, Clock: k.clock, Logger: k.logger,
	})
}

// running are the pods that use the node's resources and are not ending.
func (k *Kubelet) running() []*core.Pod {
	return slices.DeleteFunc(k.mayRun(), func(pod *core.Pod) bool { return k.workers.TerminationRequested(pod.UID) })
}

// ended tells whether no container of a pod runs or will run.
func (k *Kubelet) ended(uid types.UID) bool { return k.workers.Phase(uid) >= podworker.Terminated }

// endedByNode tells whether a pod has ended because the node was short of what it used.
func (k *Kubelet) endedByNode(uid types.UID) bool {
	if !k.ended(uid) {
		return false
	}
	status, ok := k.statuses.Get(uid)
	if !ok {
		pod, known := k.pods.ByUID(uid)
		if !known {
			return false
		}
		status = pod.Status // from before this kubelet
	}
	return status.Reason == evicted || status.Reason == preempting
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
	k.events.annotated(pod, v.Offenders.Annotations(), corev1.EventTypeWarning, evicted, v.Message)
	k.metrics.Evictions.WithLabelValues(v.Signal).Inc()
	done := make(chan struct{})
	end := termination{reason: evicted, message: v.Message, disrupted: v.Message, grace: &v.Grace, done: done}
	if v.Limit {
		end.disrupted = ""
	}
	k.terminatePod(pod, end)
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
