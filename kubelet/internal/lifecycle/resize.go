package lifecycle

import (
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// resizeRetry is how often to retry a change of resources for which the node
// had no room.
const resizeRetry = 5 * time.Second

// allocate returns the pod with the resources that it and its containers are to have now.
func (l *Lifecycle) allocate(pod *core.Pod) *core.Pod {
	before, now := l.Allocations.Pending(pod.UID), (*core.PodCondition)(nil)
	changed, why := false, ""
	with := l.Allocations.Allocate(pod, func(pod *core.Pod, granted func(*core.Pod) *core.Pod) *core.PodCondition {
		var others []admit.ResizeRequest
		for _, other := range l.OtherPods(pod) {
			others = append(others, admit.ResizeRequest{Allocated: granted(other), Desired: other})
		}
		decision := admit.Resize(admit.ResizeRequest{Allocated: granted(pod), Desired: withKnownStatus(l.Pods, pod)}, others, l.Allocatable())
		if changed = decision.Admitted; !changed {
			if why = decision.Reason; decision.InsufficientResource != "" {
				why = "OutOf" + string(decision.InsufficientResource)
			}
			now = &core.PodCondition{
				Type: corev1.PodResizePending, Reason: decision.Reason, Message: decision.Message, ObservedGeneration: pod.Generation,
			}
		}
		return now
	})
	switch {
	case changed:
		l.RecordGrants() // before anything is done about it
		l.Events.Eventf(pod, corev1.EventTypeNormal, "ResizeStarted", "Pod resize started: %s", sizes(with, ""))
	case now != nil && (before == nil || before.Reason != now.Reason || before.ObservedGeneration != now.ObservedGeneration):
		l.Events.Eventf(pod, corev1.EventTypeWarning, "Resize"+now.Reason, "Pod resize %s: %s", why, sizes(pod, now.Message))
	}
	return with
}

// withKnownStatus is the pod with its current status in the API. Waiting pods are ordered by the
// time since when that status says that they wait, and a retried pod still has the older status
// from when it was changed; two such pods would each wait for the other.
func withKnownStatus(pods *podmanager.Manager, pod *core.Pod) *core.Pod {
	known, ok := pods.ByUID(pod.UID)
	if !ok {
		return pod
	}
	with := *pod
	with.Status = known.Status
	return &with
}

// sizes are a pod's resources as events show them, with what is wrong about them.
func sizes(pod *core.Pod, problem string) string {
	type container struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	var all struct {
		Resources      *corev1.ResourceRequirements `json:"resources,omitempty"`
		InitContainers []container                  `json:"initContainers,omitempty"`
		Containers     []container                  `json:"containers"`
		Generation     int64                        `json:"generation"`
		Error          string                       `json:"error,omitempty"`
	}
	all.Resources, all.Generation, all.Error = pod.Spec.Resources, pod.Generation, problem
	for i := range pod.Spec.InitContainers {
		all.InitContainers = append(all.InitContainers, container{pod.Spec.InitContainers[i].Name, pod.Spec.InitContainers[i].Resources})
	}
	for i := range pod.Spec.Containers {
		all.Containers = append(all.Containers, container{pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Resources})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// ensureCgroup sets the pod's control group as its containers need it. While they
// are being resized, it also has room for their old resources; the returned
// function ends that, once they are. Every sync asks for it: an earlier one may not have come
// this far, or have failed, and a group without limits is what the runtime would make of it.
func (l *Lifecycle) ensureCgroup(pod *core.Pod, found *runtimestate.PodStatus) (finishCgroup func() error, err error) {
	before := l.records.of(pod.UID).before
	if l.resizing(pod.UID, found) {
		before = l.Allocations.AsActual(pod)
		l.records.change(pod.UID, func(one *record) { one.before = before })
	}
	if before == nil {
		if before = l.Cgroups.Unfinished(pod); before != nil {
			l.records.change(pod.UID, func(one *record) { one.before = before })
		}
	}
	if before == nil {
		return func() error { return nil }, l.Cgroups.Create(pod)
	}
	return func() error { return l.finishCgroup(pod, before) }, l.Cgroups.RaiseLimits(pod, before)
}

// finishCgroup finishes the resizing of a pod whose containers have their new resources.
func (l *Lifecycle) finishCgroup(pod, before *core.Pod) error {
	if err := l.Cgroups.SetFinalLimits(pod, before); err != nil {
		return &podruntime.ResizeError{Err: err}
	}
	l.records.change(pod.UID, func(one *record) { one.before = nil })
	l.Allocations.SetPodActual(pod.UID)
	l.Allocations.SetFailure(pod.UID, "")
	l.Events.Eventf(pod, corev1.EventTypeNormal, "ResizeCompleted", "Pod resize completed: %s", sizes(pod, ""))
	return nil
}

// finishResize settles a pod whose running containers have their resources, and notes how its resizing
// went; err is what a sync failed with. A container that can't be started holds up nothing: it starts
// with its new resources.
func (l *Lifecycle) finishResize(pod *core.Pod, found *runtimestate.PodStatus, err error, finishCgroup func() error) error {
	if err == nil || !l.containersResizing(pod.UID, found) {
		err = errors.Join(err, finishCgroup())
	}
	l.noteResize(pod, err)
	return err
}

// noteResize records why a pod was not resized in a sync, for its condition, and
// reports changes.
func (l *Lifecycle) noteResize(pod *core.Pod, err error) {
	var failed *podruntime.ResizeError
	switch {
	case errors.As(err, &failed):
		if failed.Error() != l.Allocations.Failure(pod.UID) {
			l.Events.Eventf(pod, corev1.EventTypeWarning, "ResizeError", "Pod resize error: %s", sizes(pod, failed.Error()))
		}
		l.Allocations.SetFailure(pod.UID, failed.Error())
	case err == nil:
		l.Allocations.SetFailure(pod.UID, "")
	}
}

// resizing says that the pod as a whole, or a running container, does not have
// its granted resources yet.
func (l *Lifecycle) resizing(uid types.UID, found *runtimestate.PodStatus) bool {
	granted, actual, known := l.Allocations.Container(uid, allocation.Pod)
	return known && len(podactions.Resized(granted, actual)) > 0 || l.containersResizing(uid, found)
}

// containersResizing reports whether a running container does not have its granted resources yet.
func (l *Lifecycle) containersResizing(uid types.UID, found *runtimestate.PodStatus) bool {
	for _, c := range found.Running() {
		granted, actual, known := l.Allocations.Container(uid, c.Name)
		if known && len(podactions.Resized(granted, actual)) > 0 {
			return true
		}
	}
	return false
}

func (l *Lifecycle) resizeConditions(uid types.UID, found *runtimestate.PodStatus) []core.PodCondition {
	var conditions []core.PodCondition
	if pending := l.Allocations.Pending(uid); pending != nil {
		conditions = append(conditions, *pending)
	}
	if l.resizing(uid, found) || l.records.of(uid).before != nil {
		progress := core.PodCondition{Type: corev1.PodResizeInProgress}
		if why := l.Allocations.Failure(uid); why != "" {
			progress.Reason, progress.Message = corev1.PodReasonError, why
		}
		conditions = append(conditions, progress)
	}
	return conditions
}

// podResources are what the containers of one pod, as granted, run with.
type podResources struct {
	*Lifecycle
	pod *core.Pod
}

func (r podResources) Actual(container string) (corev1.ResourceRequirements, bool) {
	return r.Allocations.Actual(r.pod.UID, container)
}

func (r podResources) Applied(container string, resources corev1.ResourceRequirements) {
	if r.Allocations.SetActual(r.pod, container, resources) {
		r.RecordGrants()
	}
}

func (r podResources) PodMemoryInUse() error {
	return r.Cgroups.MemoryInUse(r.pod, r.Allocations.AsActual(r.pod))
}
