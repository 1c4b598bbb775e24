package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/node"
)

// makeGroups makes the control groups above the pods, with the driver that the
// container runtime says it has: two drivers on one machine would each move
// what the other made. The configuration counts where the runtime says nothing
// (KEP-4033).
func (k *Kubelet) makeGroups(ctx context.Context) error {
	driver, err := k.cri.CgroupDriver(ctx)
	if err != nil {
		return fmt.Errorf("asking the container runtime for its cgroup driver: %w", err)
	}
	if driver = cmp.Or(driver, k.config.CgroupDriver); driver != k.config.CgroupDriver {
		k.logger.Warn("the container runtime's cgroup driver is used, not the one of cgroupDriver or --cgroup-driver",
			zap.String("runtime", driver), zap.String("configured", k.config.CgroupDriver))
		k.config.CgroupDriver = driver // for those who ask what the kubelet runs with
	}
	reserved, err := k.config.Reserved()
	if err != nil {
		return err
	}
	k.cgroups, err = cgroup.New(cgroup.Options{
		Root: k.config.CgroupRoot, Driver: driver, PerQOS: k.config.CgroupsPerQOS,
		Allocatable: boundOfPods(k.node.Node().Status.Capacity, reserved), Processes: processesOfPods(int64(node.MaxProcesses()), reserved),
		Unbounded: !k.config.BoundsPods(), NoQuota: !k.config.CPUQuota,
		PodPidsLimit: k.config.PodPidsLimit, Observe: k.metrics.ObserveGroup,
	})
	return err
}

// boundOfPods is the limit of all pods together: everything that is not reserved. It
// includes the eviction thresholds, so that pods are evicted before the kernel kills
// them.
func boundOfPods(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	bound := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		left := capacity[name].DeepCopy()
		left.Sub(reserved[name])
		if left.Sign() > 0 {
			bound[name] = left
		}
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
func (k *Kubelet) podsMemory() (available, capacity int64, err error) {
	used, err := k.cgroups.UsageOfPods()
	capacity = k.cgroups.Allocatable.Memory().Value()
	return max(0, capacity-int64(used.WorkingSet)), capacity, err
}

// groupUsage is what a pod's group uses, or, without a uid, what all pods use together.
func (k *Kubelet) groupUsage(uid types.UID) (usage cgroup.Usage, known bool) {
	if !k.config.CgroupsPerQOS {
		return usage, false
	}
	if uid == "" {
		usage, err := k.cgroups.UsageOfPods()
		return usage, err == nil
	}
	pod, known := k.pods.ByUID(uid)
	if !known {
		return usage, false
	}
	usage, err := k.cgroups.Usage(pod)
	return usage, err == nil // it may be gone
}

// daemonUsage is what the groups of the kubelet and of the container runtime use,
// if they have groups of their own, as services do.
func (k *Kubelet) daemonUsage() map[string]cgroup.Usage {
	usages := map[string]cgroup.Usage{}
	if k.hollow != nil {
		return usages
	}
	add := func(name string, pid int) {
		if usage, known, err := cgroup.UsageOfProcess(pid); err == nil && known {
			usages[name] = usage
		}
	}
	add(stats.SystemContainerKubelet, os.Getpid())
	if pid, err := cri.Process(k.config.RuntimeEndpoint); err == nil { // else it is away, or not to be seen
		add(stats.SystemContainerRuntime, pid)
	}
	return usages
}

// podInterfaces are those that the pod's sandbox has, where they are its own.
func (k *Kubelet) podInterfaces(uid types.UID, sandbox string) []node.Interface {
	pod, known := k.pods.ByUID(uid)
	if !known || !k.config.CgroupsPerQOS {
		return nil
	}
	if pod.Spec.HostNetwork {
		return []node.Interface{}
	}
	pid, err := k.cgroups.Process(pod, sandbox)
	if err != nil || pid == 0 {
		return nil // it may be gone, or the runtime has none for it
	}
	return node.InterfacesOf(pid)
}

// containerUsage is what the group of a pod's container reports.
func (k *Kubelet) containerUsage(uid types.UID, id string) (usage cgroup.ContainerUsage, known bool) {
	pod, known := k.pods.ByUID(uid)
	if !known || !k.config.CgroupsPerQOS {
		return usage, false
	}
	usage, err := k.cgroups.ContainerUsage(pod, id)
	return usage, err == nil // it may be gone
}
