package kubelet

import (
	"context"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podworker"
)

// HandlePodCleanups sees to what is left of pods that are gone: their workers
// end at once, the rest is taken away in the background, one round at a time.
// Before all sources were heard nobody can say which pods are gone.
func (k *Kubelet) HandlePodCleanups(ctx context.Context) {
	if !k.ready.All() {
		return
	}
	desired := map[types.UID]bool{}
	for _, pod := range k.pods.Pods() {
		desired[pod.UID] = true
	}
	states := k.workers.SyncKnownPods(desired)
	k.statuses.Retain(func(uid types.UID) bool {
		_, worked := states[uid]
		return desired[uid] || worked
	})
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
	inRuntime := map[types.UID]bool{}
	for _, pod := range running {
		inRuntime[pod.UID] = true
		if k.forgotten(pod.UID) {
			k.workers.Update(podworker.Update{Type: podworker.Kill, Running: &podworker.RunningPod{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}})
		}
	}
	orphan := func(uid types.UID) bool { return !inRuntime[uid] && k.forgotten(uid) }
	k.cleanDirectories(ctx, orphan)
	k.cleanGroups(orphan)
}

// cleanDirectories takes away volumes and directories of pods that are gone.
func (k *Kubelet) cleanDirectories(ctx context.Context, orphan func(types.UID) bool) {
	uids, err := k.volumes.Pods()
	if err != nil {
		k.logger.Warn("directories of pods cannot be listed", zap.Error(err))
		return
	}
	for _, uid := range uids {
		if !orphan(uid) {
			continue
		}
		if err := k.volumes.RemovePodDir(ctx, uid); err != nil {
			k.logger.Warn("directory of a pod that is gone stays", zap.String("uid", string(uid)), zap.Error(err))
		}
	}
}

// cleanGroups takes away control groups of pods that are gone.
func (k *Kubelet) cleanGroups(orphan func(types.UID) bool) {
	groups, err := k.cgroups.Pods()
	if err != nil {
		k.logger.Warn("control groups of pods cannot be listed", zap.Error(err))
		return
	}
	for uid, class := range groups {
		if !orphan(uid) {
			continue
		}
		if err := k.cgroups.Destroy(uid, class); err != nil {
			k.logger.Warn("control group of a pod that is gone stays", zap.String("uid", string(uid)), zap.Error(err))
		}
	}
}
