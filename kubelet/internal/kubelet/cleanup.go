package kubelet

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// cleanups are the rounds in which pods that are gone are cleaned up.
type cleanups struct {
	first  sync.Once // once all sources were heard
	busy   atomic.Bool
	rounds sync.WaitGroup // under way: one at the most
}

// begin starts a round in the background, unless one is under way.
func (c *cleanups) begin(round func()) {
	if !c.busy.CompareAndSwap(false, true) {
		return
	}
	c.rounds.Go(func() {
		defer c.busy.Store(false)
		round()
	})
}

// HandlePodCleanups cleans up pods that are gone: those with workers at once,
// those that only the runtime knows in the background, one round at a time. The
// collector removes what they leave behind. Before all sources have been heard,
// it is unknown which pods are gone.
func (k *Kubelet) HandlePodCleanups(ctx context.Context) {
	if !k.ready.All() {
		return
	}
	k.cleanups.first.Do(k.collector.CollectSoon) // for what an earlier kubelet left
	desired := map[types.UID]bool{}
	for _, pod := range k.pods.Pods() {
		desired[pod.UID] = true
	}
	worked := k.workers.SyncKnownPods(desired)
	k.statuses.Retain(func(uid types.UID) bool { return desired[uid] || worked[uid] })
	k.allocations.Retain(func(uid types.UID) bool { return desired[uid] || worked[uid] })
	k.probes.Retain(func(uid types.UID) bool { return k.workers.CouldHaveRunningContainers(uid) })
	k.cleanups.begin(func() { k.cleanUp(ctx) })
}

// forgotten says that nobody wants the pod, and nobody is busy with it.
func (k *Kubelet) forgotten(uid types.UID) bool {
	_, desired := k.pods.ByUID(uid)
	return !desired && k.workers.Phase(uid) == podworker.Unknown
}

// refused says that the pod was rejected, and what an earlier kubelet started of it has
// not ended: a static pod's status does not tell of that.
func (k *Kubelet) refused(pod *runtimestate.RunningPod) bool {
	current, ok := k.statuses.Get(pod.UID)
	return ok && core.Ended(current.Phase) && pod.Lasts() && k.workers.Phase(pod.UID) == podworker.Unknown
}

func (k *Kubelet) cleanUp(ctx context.Context) {
	for _, mirror := range k.pods.OrphanedMirrors() {
		if !k.workers.NameHeld(mirror.Namespace, mirror.Name) { // else its pod has not ended yet, and drop follows
			k.mirrors.Delete(mirror)
		}
	}
	for _, pod := range k.pods.Pods() {
		if k.workers.Phase(pod.UID) == podworker.Syncing { // while it waits, the mirror shows the pod that it waits for
			k.mirrors.EnsureMirror(pod)
		}
	}
	running, err := k.state.Pods(ctx)
	if err != nil {
		return // the runtime is away; its health says so
	}
	for _, pod := range running {
		if k.forgotten(pod.UID) || k.refused(pod) {
			k.metrics.Orphans.Inc()
			k.workers.Update(podworker.Update{Type: podworker.Kill, Running: &podworker.RunningPod{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}})
		}
	}
}
