package nodestats

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

// Measure measures what pods use of the disk.
type Measure func(ctx context.Context, pods []*core.Pod, disk bool) (map[types.UID]*eviction.Usage, error)

// Usages are what pods use of the disk, for clients of the server.
type Usages struct {
	measure Measure
	pods    func() []*core.Pod
	every   time.Duration
	clock   clock.PassiveClock

	mu      sync.Mutex
	at      time.Time
	last    map[types.UID]server.PodUsage // replaced, never changed
	pending chan struct{}                 // closed when the measurement that is being made is there; nil if none is
}

// NewUsages returns Usages of these pods. A measurement is good enough for as long as every says: to
// measure is to walk through everything that pods have on disk. If every is not positive, nothing is
// measured.
func NewUsages(measure Measure, pods func() []*core.Pod, every time.Duration, clock clock.PassiveClock) *Usages {
	return &Usages{measure: measure, pods: pods, every: every, clock: clock}
}

// logsWait is how long the sizes of logs are waited for: monitors need the other metrics
// also while the runtime does not answer.
const logsWait = 5 * time.Second

// Get returns a recent measurement, or makes one. Pods that can't be measured
// completely have partial results. Who can't wait for it gets the one before.
func (u *Usages) Get(ctx context.Context) map[types.UID]server.PodUsage {
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
func (u *Usages) begin(ctx context.Context) (pending <-chan struct{}) {
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
func (u *Usages) keep(measured map[types.UID]*eviction.Usage, at time.Time) {
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

// Logs returns the size of containers' logs in bytes, by pod and container.
func (u *Usages) Logs() map[types.UID]map[string]uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), logsWait) // Collect has no context
	defer cancel()
	bytes := map[types.UID]map[string]uint64{}
	for uid, one := range u.Get(ctx) {
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
