package synchandler

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/metrics"
	"kctl/kubelet/internal/mirror"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
)

// Collector removes what pods that are gone leave behind.
type Collector interface{ CollectSoon() }

// Probes forgets the probes of pods.
type Probes interface {
	Retain(known func(uid types.UID) bool)
}

// CleanerOptions are the rooms that know of pods, and forget those that are gone.
type CleanerOptions struct {
	// AllHeard says that every source has told of its pods. Before, it is unknown which pods are gone.
	AllHeard func() bool
	// Runtime returns the pods that the runtime has.
	Runtime func(ctx context.Context) ([]*runtimestate.RunningPod, error)

	Pods        *podmanager.Manager
	Workers     *podworker.Workers
	Active      *activepods.Pods
	Statuses    *status.Manager
	Allocations *allocation.Manager
	Mirrors     *mirror.Manager
	Probes      Probes
	Collector   Collector
	Metrics     *metrics.Metrics
}

// Cleaner cleans up pods that are gone, in rounds.
type Cleaner struct {
	o      CleanerOptions
	first  sync.Once // once all sources were heard
	busy   atomic.Bool
	rounds sync.WaitGroup // under way: one at the most
}

// NewCleaner returns a Cleaner.
func NewCleaner(o CleanerOptions) *Cleaner { return &Cleaner{o: o} }

// Wait waits for the round that is under way.
func (c *Cleaner) Wait() { c.rounds.Wait() }

// collectSoon has removed what a pod left that is gone.
func (c *Cleaner) collectSoon() { c.o.Collector.CollectSoon() }

// Begin cleans up pods that are gone: those with workers at once, those that only the runtime
// knows in the background, one round at a time. The collector removes what they leave behind.
func (c *Cleaner) Begin(ctx context.Context) {
	if !c.o.AllHeard() {
		return
	}
	c.first.Do(c.o.Collector.CollectSoon) // for what an earlier kubelet left
	desired := map[types.UID]bool{}
	for _, pod := range c.o.Pods.Pods() {
		desired[pod.UID] = true
	}
	worked := c.o.Workers.SyncKnownPods(desired)
	c.o.Statuses.Retain(func(uid types.UID) bool { return desired[uid] || worked[uid] })
	c.o.Allocations.Retain(func(uid types.UID) bool { return desired[uid] || worked[uid] })
	c.o.Probes.Retain(func(uid types.UID) bool { return c.o.Workers.CouldHaveRunningContainers(uid) })
	if !c.busy.CompareAndSwap(false, true) {
		return
	}
	c.rounds.Go(func() {
		defer c.busy.Store(false)
		c.CleanUp(ctx)
	})
}

// refused says that the pod was rejected, and what an earlier kubelet started of it has
// not ended: a static pod's status does not tell of that.
func (c *Cleaner) refused(pod *runtimestate.RunningPod) bool {
	current, ok := c.o.Statuses.Get(pod.UID)
	return ok && core.Ended(current.Phase) && pod.Lasts() && c.o.Workers.Phase(pod.UID) == podworker.Unknown
}

// CleanUp does a round.
func (c *Cleaner) CleanUp(ctx context.Context) {
	for _, mirror := range c.o.Pods.OrphanedMirrors() {
		if !c.o.Workers.NameHeld(mirror.Namespace, mirror.Name) { // else its pod has not ended yet, and drop follows
			c.o.Mirrors.Delete(mirror)
		}
	}
	for _, pod := range c.o.Pods.Pods() {
		if c.o.Workers.Phase(pod.UID) == podworker.Syncing { // while it waits, the mirror shows the pod that it waits for
			c.o.Mirrors.EnsureMirror(pod)
		}
	}
	running, err := c.o.Runtime(ctx)
	if err != nil {
		return // the runtime is away; its health says so
	}
	for _, pod := range running {
		if c.o.Active.Forgotten(pod.UID) || c.refused(pod) {
			c.o.Metrics.Orphans.Inc()
			c.o.Workers.Update(podworker.Update{Type: podworker.Kill, Running: &podworker.Orphan{
				UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name,
			}})
		}
	}
}
