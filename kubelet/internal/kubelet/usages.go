package kubelet

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/eviction"
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

	mu   sync.Mutex // held while it is measured: others wait for the same answer
	at   time.Time
	last map[types.UID]server.PodUsage
}

// get returns a recent measurement, or makes one. Pods that can't be measured
// completely have partial results.
func (u *usages) get(ctx context.Context) map[types.UID]server.PodUsage {
	if u.every <= 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := u.clock.Now(); u.last == nil || now.Sub(u.at) >= u.every {
		measured, _ := u.measure(ctx, u.pods(), true)
		u.at, u.last = now, map[types.UID]server.PodUsage{}
		for uid, one := range measured {
			u.last[uid] = podUsage(one, metav1.NewTime(now))
		}
	}
	return u.last
}

// logs are the bytes of containers' logs, by pod and container.
func (u *usages) logs() map[types.UID]map[string]uint64 {
	bytes := map[types.UID]map[string]uint64{}
	for uid, one := range u.get(context.Background()) { // metrics are asked for without a context
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
