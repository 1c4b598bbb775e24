package activepods

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
)

// Pods answers from what four rooms know now.
type Pods struct {
	pods     *podmanager.Manager
	workers  *podworker.Workers
	statuses *status.Manager
	cache    *podcache.Cache
}

// New returns Pods that ask these.
func New(pods *podmanager.Manager, workers *podworker.Workers, statuses *status.Manager, cache *podcache.Cache) *Pods {
	return &Pods{pods: pods, workers: workers, statuses: statuses, cache: cache}
}

// Active says that the pod holds resources of the node.
func (p *Pods) Active(pod *core.Pod) bool {
	if p.workers.Phase(pod.UID) >= podworker.Terminated {
		return false
	}
	if p.workers.CouldHaveRunningContainers(pod.UID) {
		return !p.endedBefore(pod)
	}
	current, ok := p.statuses.Get(pod.UID)
	return !core.Ended(pod.Status.Phase) && !(ok && core.Ended(current.Phase))
}

// endedBefore says that the pod ended under an earlier kubelet: its worker has only begun, and only
// cleans up after it.
func (p *Pods) endedBefore(pod *core.Pod) bool {
	if !core.Ended(pod.Status.Phase) {
		return false
	}
	known, err := p.cache.Get(pod.UID)
	return err == nil && !known.RunningPod("").Lasts()
}

// Others are the pods that hold resources of the node beside this one.
func (p *Pods) Others(pod *core.Pod) []*core.Pod {
	return slices.DeleteFunc(p.pods.Pods(), func(other *core.Pod) bool { return other.UID == pod.UID || !p.Active(other) })
}

// MayRun are the pods that may have something running, including those that are
// ending.
func (p *Pods) MayRun() []*core.Pod {
	return slices.DeleteFunc(p.pods.Pods(), func(pod *core.Pod) bool { return !p.workers.CouldHaveRunningContainers(pod.UID) })
}

// Running are the pods that use the node's resources and are not ending.
func (p *Pods) Running() []*core.Pod {
	return slices.DeleteFunc(p.MayRun(), func(pod *core.Pod) bool { return p.workers.TerminationRequested(pod.UID) })
}

// Evictable are the pods that use the node's resources and may be ended for that. Those that are ending are among
// them: of a long grace period they have the rest only while the node can afford it. Those whose status has
// ended are not: they have no more to do than to be cleaned up after. Nor are those that the node ends already:
// one whose worker hangs would be evicted again and again, in place of all others.
func (p *Pods) Evictable() []*core.Pod {
	return slices.DeleteFunc(p.MayRun(), func(pod *core.Pod) bool {
		if p.workers.EndsForNode(pod.UID) {
			return true
		}
		status, ok := p.statuses.Get(pod.UID)
		if !ok {
			status = pod.Status // from before this kubelet
		}
		return core.Ended(status.Phase)
	})
}

// Ended tells whether no container of a pod runs or will run.
func (p *Pods) Ended(uid types.UID) bool { return p.workers.Phase(uid) >= podworker.Terminated }

// EndedFor tells whether a pod has ended for one of these reasons.
func (p *Pods) EndedFor(uid types.UID, reasons ...string) bool {
	if !p.Ended(uid) {
		return false
	}
	status, ok := p.statuses.Get(uid)
	if !ok {
		pod, known := p.pods.ByUID(uid)
		if !known {
			return false
		}
		status = pod.Status // from before this kubelet
	}
	return slices.Contains(reasons, status.Reason)
}

// Forgotten says that nobody wants the pod, and nobody is busy with it.
func (p *Pods) Forgotten(uid types.UID) bool {
	_, desired := p.pods.ByUID(uid)
	return !desired && p.workers.Phase(uid) == podworker.Unknown
}

// VolumeImages are the images that active pods have as volumes.
func (p *Pods) VolumeImages() []string {
	var references []string
	for _, pod := range p.pods.Pods() {
		for i := range pod.Spec.Volumes {
			if image := pod.Spec.Volumes[i].Image; image != nil && p.Active(pod) {
				references = append(references, image.Reference)
			}
		}
	}
	return references
}
