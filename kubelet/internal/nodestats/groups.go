package nodestats

import (
	"os"

	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/podmanager"
)

// Groups reads the control groups of pods.
type Groups struct {
	pods    *podmanager.Manager
	cgroups *cgroup.Manager
}

// NewGroups returns Groups that know nothing if cgroups is nil, which says that pods have none of
// their own.
func NewGroups(pods *podmanager.Manager, cgroups *cgroup.Manager) *Groups {
	return &Groups{pods: pods, cgroups: cgroups}
}

// Usage is what a pod's container or sandbox uses, the whole pod without an id, or, without
// a uid, what all pods use together.
func (g *Groups) Usage(uid types.UID, id string) (usage cgroup.Usage, known bool) {
	if g.cgroups == nil {
		return usage, false
	}
	if uid == "" {
		usage, err := g.cgroups.UsageOfPods()
		return usage, err == nil
	}
	pod, known := g.pods.ByUID(uid)
	if !known {
		return usage, false
	}
	var err error
	if id == "" {
		usage, err = g.cgroups.Usage(pod)
	} else {
		usage, err = g.cgroups.ContainerUsage(pod, id)
	}
	return usage, err == nil // it may be gone
}

// DaemonUsage is what the groups of the kubelet and of the container runtime use,
// if they have groups of their own, as services do.
func DaemonUsage(runtimeEndpoint string) map[string]cgroup.Usage {
	usages := map[string]cgroup.Usage{}
	add := func(name string, pid int) {
		if usage, known, err := cgroup.UsageOfProcess(pid); err == nil && known {
			usages[name] = usage
		}
	}
	add(stats.SystemContainerKubelet, os.Getpid())
	if pid, err := cri.RuntimeProcess(runtimeEndpoint); err == nil { // else it is away, or not to be seen
		add(stats.SystemContainerRuntime, pid)
	}
	return usages
}

// Interfaces are those that the pod's sandbox has, where they are its own.
func (g *Groups) Interfaces(uid types.UID, sandbox string) []node.Interface {
	pod, known := g.pods.ByUID(uid)
	if !known || g.cgroups == nil {
		return nil
	}
	if pod.Spec.HostNetwork {
		return []node.Interface{}
	}
	pid, err := g.cgroups.Process(pod, sandbox)
	if err != nil || pid == 0 {
		return nil // it may be gone, or the runtime has none for it
	}
	return node.InterfacesOf(pid)
}

// Details is what the group of a pod's container or sandbox reports; that of the whole pod
// without an id.
func (g *Groups) Details(uid types.UID, id string) (details cgroup.Details, known bool) {
	pod, known := g.pods.ByUID(uid)
	if !known || g.cgroups == nil {
		return details, false
	}
	var err error
	if id == "" {
		details, err = g.cgroups.PodDetails(pod)
	} else {
		details, err = g.cgroups.ContainerDetails(pod, id)
	}
	return details, err == nil // it may be gone
}

// ClassDetails is what the groups above the pods' report.
func (g *Groups) ClassDetails() []cgroup.Details {
	if g.cgroups == nil {
		return nil
	}
	all, _ := g.cgroups.ClassDetails() // what can't be read is left out
	return all
}
