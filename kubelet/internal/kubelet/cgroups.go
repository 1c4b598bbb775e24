package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/opencontainers/cgroups"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/node"
	"kctl/proto/backoff"
)

// newCgroups makes the control groups above the pods, with the driver that the
// container runtime says it has: two drivers on one machine would each move
// what the other made. The configuration counts where the runtime says nothing
// (KEP-4033).
func (g *given) newCgroups(ctx context.Context, runtime *cri.Client, capacity corev1.ResourceList) (*cgroup.Manager, error) {
	driver, err := runtime.CgroupDriver(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the container runtime for its cgroup driver: %w", err)
	}
	if driver = cmp.Or(driver, g.config.Cgroups.Driver); driver != g.config.Cgroups.Driver {
		g.logger.Warn("the container runtime's cgroup driver is used, not the one of cgroupDriver or --cgroup-driver",
			zap.String("runtime", driver), zap.String("configured", g.config.Cgroups.Driver))
		g.config.Cgroups.Driver = driver // so that /configz shows it
	}
	if !cgroups.IsCgroup2UnifiedMode() && g.config.MemoryQoS() != (cgroup.MemoryQoS{}) {
		g.logger.Warn("memoryThrottlingFactor and memoryReservationPolicy do nothing on this machine, which has cgroup v1")
	}
	reserved, err := g.config.Allocatable.Reserved()
	if err != nil {
		return nil, err
	}
	groups, err := cgroup.New(cgroup.Options{
		Root: g.config.Cgroups.Root, Driver: driver, PerQOS: g.config.Cgroups.PerQOS,
		Allocatable: boundOfPods(capacity, reserved), Processes: processesOfPods(int64(node.MaxProcesses()), reserved),
		PodsUnlimited: !g.config.Allocatable.EnforcesPods(), NoCPUQuota: !g.config.Cgroups.CPUCFSQuota,
		CPUPeriod:    g.config.Cgroups.CPUCFSQuotaPeriod.Microseconds(),
		PodPidsLimit: g.config.PodPidsLimit, Observe: g.metrics.ObserveGroup,
		MemoryQoS: g.config.MemoryQoS(), ProtectDaemons: g.config.ProtectsDaemons(),
	})
	if err != nil {
		return nil, err
	}
	for _, daemons := range g.config.Allocatable.BoundDaemons() {
		if err := groups.BoundDaemons(daemons.Group, daemons.Reserved, daemons.Compressible); err != nil {
			return nil, fmt.Errorf("holding the %s reserved control group %s to its bounds: %w", daemons.Whose, daemons.Group, err)
		}
	}
	return groups, nil
}

// boundPods holds all pods together to what is not reserved. Where they use more now,
// as after more was reserved, it tries again until some have been evicted.
func (g *given) boundPods(ctx context.Context, groups *cgroup.Manager, events *podEvents) error {
	for {
		err := groups.BoundPods()
		if err == nil {
			events.Eventf(events.node(), corev1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
			return nil
		}
		g.logger.Warn("pods are not held to their bound yet", zap.Error(err))
		events.nodeWarning("FailedNodeAllocatableEnforcement", fmt.Sprintf("Failed to update Node Allocatable Limits: %v", err))
		if err := backoff.Sleep(ctx, g.clock, time.Minute); err != nil {
			return err
		}
	}
}

// boundOfPods is the limit of all pods together: everything that is not reserved. It
// includes the eviction thresholds, so that pods are evicted before the kernel kills
// them.
func boundOfPods(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	bound := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		left := capacity[name].DeepCopy()
		left.Sub(reserved[name])
		bound[name] = left
	}
	return bound
}

// processesOfPods is how many processes all pods together may have; 0 if the
// machine's number is unknown.
func processesOfPods(most int64, reserved corev1.ResourceList) int64 {
	if most == 0 {
		return 0
	}
	kept := reserved[cgroup.Processes]
	return max(1, most-kept.Value())
}

// podsMemory is how much memory pods have left before they reach their limit.
func podsMemory(groups *cgroup.Manager) (available, capacity int64, err error) {
	used, err := groups.UsageOfPods()
	capacity = groups.Allocatable.Memory().Value()
	return max(0, capacity-int64(used.WorkingSet)), capacity, err
}
