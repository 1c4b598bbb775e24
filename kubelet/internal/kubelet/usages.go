package kubelet

import (
	"context"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/server"
	"kctl/proto/core"
)

// usages are what pods use of the disk, for clients of the server.
type usages struct {
	measure func(ctx context.Context, pods []*core.Pod, disk bool) (map[types.UID]*eviction.Usage, error)
	pods    func() []*core.Pod
	// every is how long a measurement is good enough: to measure is to walk through
	// everything that pods have on disk. If it is not positive, nothing is measured.
	every time.Duration
	clock clock.Clock

	mu      sync.Mutex
	at      time.Time
	last    map[types.UID]server.PodUsage // replaced, never changed
	pending chan struct{}                 // closed when the measurement that is being made is there; nil if none is
}

// logsWait is how long the sizes of logs are waited for: monitors need the other metrics
// also while the runtime does not answer.
const logsWait = 5 * time.Second

// get returns a recent measurement, or makes one. Pods that can't be measured
// completely have partial results. Who can't wait for it gets the one before.
func (u *usages) get(ctx context.Context) map[types.UID]server.PodUsage {
	if u.every <= 0 {
		return nil
	}
	if pending := u.begin(ctx); pending != nil {
		select {
		case <-pending:
		case <-ctx.Done():
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// begin makes a measurement if it is time, of which there is one at a time. It outlives the
// request that it was begun for: others wait for it, too.
func (u *usages) begin(ctx context.Context) (pending <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.clock.Now()
	if u.pending != nil || u.last != nil && now.Sub(u.at) < u.every {
		return u.pending
	}
	done := make(chan struct{})
	u.pending = done
	go func() {
		defer close(done)
		measured, _ := u.measure(context.WithoutCancel(ctx), u.pods(), true)
		u.keep(measured, now)
	}()
	return done
}

// keep keeps a measurement; without any result the one before is good enough until the next
// request.
func (u *usages) keep(measured map[types.UID]*eviction.Usage, at time.Time) {
	all := map[types.UID]server.PodUsage{}
	for uid, one := range measured {
		all[uid] = podUsage(one, metav1.NewTime(at))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending = nil
	if measured != nil {
		u.at, u.last = at, all
	}
}

// logs returns the size of containers' logs in bytes, by pod and container.
func (u *usages) logs() map[types.UID]map[string]uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), logsWait) // Collect has no context
	defer cancel()
	bytes := map[types.UID]map[string]uint64{}
	for uid, one := range u.get(ctx) {
		bytes[uid] = map[string]uint64{}
		for name, logs := range one.Logs {
			bytes[uid][name] = logs.Bytes
		}
	}
	return bytes
}

func podUsage(one *eviction.Usage, at metav1.Time) server.PodUsage {
	usage := server.PodUsage{
		At: at, Disk: uint64(max(0, one.Disk)), Inodes: uint64(max(0, one.Inodes)), Processes: uint64(max(0, one.Processes)),
		Volumes: map[string]server.VolumeUsage{}, Logs: map[string]server.LogUsage{},
	}
	for name, share := range one.Containers {
		usage.Logs[name] = server.LogUsage{Bytes: uint64(max(0, share.Logs)), Inodes: uint64(max(0, share.LogInodes))}
	}
	for name, v := range one.Volumes {
		usage.Volumes[name] = server.VolumeUsage{Dir: v.Dir, Claim: v.Claim, Bytes: uint64(max(0, v.Bytes)), Inodes: uint64(max(0, v.Inodes))}
	}
	return usage
}

// groupUsage is what a pod's container or sandbox uses, the whole pod without an id, or, without
// a uid, what all pods use together.
func (k *Kubelet) groupUsage(uid types.UID, id string) (usage cgroup.Usage, known bool) {
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
	var err error
	if id == "" {
		usage, err = k.cgroups.Usage(pod)
	} else {
		usage, err = k.cgroups.ContainerUsage(pod, id)
	}
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
	if pid, err := cri.RuntimeProcess(k.config.ContainerRuntimeEndpoint); err == nil { // else it is away, or not to be seen
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

// groupDetails is what the group of a pod's container or sandbox reports; that of the whole pod
// without an id.
func (k *Kubelet) groupDetails(uid types.UID, id string) (details cgroup.Details, known bool) {
	pod, known := k.pods.ByUID(uid)
	if !known || !k.config.CgroupsPerQOS {
		return details, false
	}
	var err error
	if id == "" {
		details, err = k.cgroups.PodDetails(pod)
	} else {
		details, err = k.cgroups.ContainerDetails(pod, id)
	}
	return details, err == nil // it may be gone
}

// classDetails is what the groups above the pods' report.
func (k *Kubelet) classDetails() []cgroup.Details {
	if !k.config.CgroupsPerQOS {
		return nil
	}
	all, _ := k.cgroups.ClassDetails() // what can't be read is left out
	return all
}
