package kubelet

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podworker"
)

// HandlePodCleanups sees to pods that are gone: their workers end at once, what
// only the runtime knows of in the background, one round at a time. What they
// leave behind is the collector's.
// Before all sources were heard nobody can say which pods are gone.
func (k *Kubelet) HandlePodCleanups(ctx context.Context) {
	if !k.ready.All() {
		return
	}
	k.firstRound.Do(k.collector.Soon) // for what an earlier kubelet left
	desired := map[types.UID]bool{}
	for _, pod := range k.pods.Pods() {
		desired[pod.UID] = true
	}
	states := k.workers.SyncKnownPods(desired)
	k.statuses.Retain(func(uid types.UID) bool {
		_, worked := states[uid]
		return desired[uid] || worked
	})
	k.probes.Retain(func(uid types.UID) bool { return k.workers.CouldHaveRunningContainers(uid) })
	if !k.cleaning.CompareAndSwap(false, true) {
		return
	}
	k.background.Go(func() {
		defer k.cleaning.Store(false)
		k.cleanUp(ctx)
	})
}

// forgotten says that nobody wants the pod, and nobody is busy with it.
func (k *Kubelet) forgotten(uid types.UID) bool {
	_, desired := k.pods.ByUID(uid)
	return !desired && k.workers.Phase(uid) == podworker.Unknown
}

func (k *Kubelet) cleanUp(ctx context.Context) {
	for _, mirror := range k.pods.OrphanedMirrors() {
		k.deleteMirror(mirror)
	}
	for _, pod := range k.pods.Pods() {
		if k.workers.CouldHaveRunningContainers(pod.UID) && !k.workers.TerminationRequested(pod.UID) {
			k.ensureMirror(pod)
		}
	}
	running, err := k.runtime.Pods(ctx)
	if err != nil {
		return // the runtime is away; its health says so
	}
	for _, pod := range running {
		if k.forgotten(pod.UID) {
			k.workers.Update(podworker.Update{Type: podworker.Kill, Running: &podworker.RunningPod{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}})
		}
	}
}
