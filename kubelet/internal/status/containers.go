package status

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// exitLost is the exit code of a container whose end was not observed: that of
// a killed process.
const exitLost = 137

// containerStatuses gives the status of each of the containers, in their order
// in the spec.
func containerStatuses(in Input, containers []core.Container, previous []core.ContainerStatus, init bool) []core.ContainerStatus {
	if len(containers) == 0 {
		return nil
	}
	statuses := make([]core.ContainerStatus, len(containers))
	for i := range containers {
		c := &containers[i]
		old := find(previous, c.Name)
		status := observed(in, c, old)
		explainWaiting(in, c, &status)
		if in.Terminal {
			settle(in, &status, old)
		}
		status.Started = new(started(in, c, &status))
		status.Ready = ready(in, c, &status, init)
		status.VolumeMounts = volumeMounts(in, c)
		setResources(in, &status, old)
		statuses[i] = status
	}
	return statuses
}

// setResources sets what a container was granted and has, once it exists.
func setResources(in Input, status, old *core.ContainerStatus) {
	if in.Resources == nil || status.ContainerID == "" {
		return
	}
	if granted, actual, known := in.Resources(status.Name); known {
		status.AllocatedResources = granted.Requests.DeepCopy()
		status.Resources = actual.DeepCopy()
	} else if old != nil {
		status.AllocatedResources, status.Resources = old.AllocatedResources, old.Resources
	}
}

// setPodResources sets what the pod as a whole was granted and has (KEP-5419): its
// own requests, or else the sum of its containers', and its overhead. Of one that
// runs that is what its control group has, and nothing that only its containers
// have, as ephemeral storage; of others all that was granted.
func setPodResources(in Input, status *core.PodStatus) {
	if in.PodResources == nil {
		return
	}
	granted, actual, known := in.PodResources()
	if !known {
		return
	}
	status.AllocatedResources = nonEmpty(resource.PodRequests(granted, resource.PodResourcesOptions{}))
	if status.Phase != corev1.PodRunning {
		status.Resources = &corev1.ResourceRequirements{
			Requests: status.AllocatedResources.DeepCopy(),
			Limits:   nonEmpty(resource.PodLimits(granted, resource.PodResourcesOptions{})),
		}
		return
	}
	requests := ofGroup(actual, resource.PodRequests(actual, resource.PodResourcesOptions{}))
	if memory, asked := status.AllocatedResources[corev1.ResourceMemory]; asked {
		requests[corev1.ResourceMemory] = memory // no control group has it: it is had once granted
	}
	limits := ofGroup(actual, resource.PodLimits(actual, resource.PodResourcesOptions{}))
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ apiresource.Quantity) bool {
		return !cgroup.Limited(actual, name)
	})
	status.Resources = &corev1.ResourceRequirements{Requests: nonEmpty(requests), Limits: nonEmpty(limits)}
}

// ofGroup leaves of a pod's resources those that its control group has, and what is
// asked for the pod as a whole.
func ofGroup(pod *core.Pod, list corev1.ResourceList) corev1.ResourceList {
	kept := corev1.ResourceList{}
	for name, quantity := range list {
		whole := false
		if r := pod.Spec.Resources; r != nil {
			_, requested := r.Requests[name]
			_, limited := r.Limits[name]
			whole = requested || limited
		}
		if whole || name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			kept[name] = quantity
		}
	}
	return kept
}

// nonEmpty is nil for an empty list, because that is what the API returns.
func nonEmpty(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return nil
	}
	return list
}

func find(statuses []core.ContainerStatus, name string) *core.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// observed is the container's status by the runtime or, if that knows nothing
// about it, by the previous status.
func observed(in Input, c *core.Container, old *core.ContainerStatus) core.ContainerStatus {
	newest, before := lastTwo(in.Runtime, c.Name)
	if newest == nil {
		return unobserved(in, c, old)
	}
	status := core.ContainerStatus{
		Name: c.Name, Image: cmp.Or(newest.Image, c.Image), ImageID: newest.ImageID,
		ContainerID: newest.ID.String(), RestartCount: newest.RestartCount,
	}
	if newest.User != nil {
		status.User = &corev1.ContainerUser{Linux: newest.User}
	}
	switch {
	case newest.State == runtimestate.StateRunning, interrupted(in, c, newest):
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: apiTime(newest.StartedAt)}
	case newest.State == runtimestate.StateExited:
		status.State.Terminated = terminated(newest)
	case newest.State == runtimestate.StateCreated:
		status.State.Waiting = notStarted(in)
	default:
		status.State.Terminated = lost(newest.ID.String(), "The container could not be located when the pod was examined")
	}
	switch {
	case before != nil && before.State == runtimestate.StateExited:
		status.LastTerminationState.Terminated = terminated(before)
	case old != nil && old.ContainerID == status.ContainerID:
		// While it waited to be restarted, its own end was its last state.
		if last := old.LastTerminationState; last.Terminated == nil || !equality.Semantic.DeepEqual(last.Terminated, status.State.Terminated) {
			status.LastTerminationState = last
		}
	case old != nil && old.State.Terminated != nil:
		status.LastTerminationState.Terminated = old.State.Terminated
	case old != nil:
		status.LastTerminationState = old.LastTerminationState
	}
	return status
}

// interrupted says that a container has ended only for the kubelet to start it again, although that
// exit code would be its last, by its policy or because it is an init container that succeeded. It is
// said to run until then: the API takes such an end for the last one, and so would those who wait for
// the pod.
func interrupted(in Input, c *core.Container, newest *runtimestate.ContainerStatus) bool {
	return newest.Again && !in.Terminal &&
		(!core.Restarts(&in.Pod.Spec, c, newest.ExitCode) || newest.Succeeded() && isInit(in, c) && !core.IsSidecar(c))
}

// volumeMounts are how the container's volumes are mounted: for read-only ones,
// whether recursively (KEP-3857).
func volumeMounts(in Input, c *core.Container) []corev1.VolumeMountStatus {
	newest, _ := lastTwo(in.Runtime, c.Name)
	var mounts []corev1.VolumeMountStatus
	for _, m := range c.VolumeMounts {
		status := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			status.RecursiveReadOnly = new(corev1.RecursiveReadOnlyDisabled)
			if newest != nil && slices.Contains(newest.RecursiveReadOnly, path.Join("/", m.MountPath)) {
				status.RecursiveReadOnly = new(corev1.RecursiveReadOnlyEnabled)
			}
		}
		mounts = append(mounts, status)
	}
	return mounts
}

// lastTwo are the newest container of that name and the one before it.
func lastTwo(runtime *runtimestate.PodStatus, name string) (newest, before *runtimestate.ContainerStatus) {
	for _, c := range runtime.Containers {
		switch {
		case c.Name != name:
		case newest == nil:
			newest = c
		default:
			return newest, c
		}
	}
	return newest, nil
}

// unobserved is the status of a container that the runtime does not have.
func unobserved(in Input, c *core.Container, old *core.ContainerStatus) core.ContainerStatus {
	waiting := core.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: notStarted(in)}}
	switch {
	case (old == nil || old.State.Waiting != nil) && through(in, c):
		waiting.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason:  "Completed",
			Message: "Unable to get init container status: the runtime has none any more. It must have ended well, as containers were made after it",
		}}
		return waiting
	case old == nil:
		return waiting
	case restartOf(in).was && (old.State.Terminated != nil || old.State.Running != nil):
		return forgotten(in, waiting, old)
	case old.State.Terminated != nil:
		// It ended, and was removed since.
		return *old.DeepCopy()
	case old.State.Running != nil || in.Terminal && old.ContainerID != "":
		// It was running when last seen, and is gone without a trace.
		waiting.LastTerminationState.Terminated = lost(old.ContainerID,
			"The container could not be located when the pod was deleted.  The container used to be Running")
		waiting.RestartCount = old.RestartCount + 1
		return waiting
	default:
		waiting.LastTerminationState = old.LastTerminationState
		waiting.RestartCount = old.RestartCount
		return waiting
	}
}

// through says that c is an init container that must have succeeded, whatever is
// known about it, because later ones were created. Static pods' statuses do not
// outlive the kubelet, and the runtime's records may be gone.
func through(in Input, c *core.Container) bool {
	return isInit(in, c) && !core.IsSidecar(c) && podactions.Initialized(&in.Pod.Spec, in.Runtime)
}

func isInit(in Input, c *core.Container) bool {
	return slices.ContainsFunc(in.Pod.Spec.InitContainers, func(i core.Container) bool { return i.Name == c.Name })
}

// notStarted is why a container waits if nothing went wrong. A pod with init
// containers reports the same even after these have finished, as upstream's
// does.
func notStarted(in Input) *corev1.ContainerStateWaiting {
	if len(in.Pod.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: runtimestate.ReasonPodInitializing}
	}
	return &corev1.ContainerStateWaiting{Reason: runtimestate.ReasonContainerCreating}
}

// initDone says that the pod's init containers are done: each has succeeded, and
// sidecars run and have started.
func initDone(in Input) bool {
	return !slices.ContainsFunc(in.Pod.Spec.InitContainers, func(c core.Container) bool {
		newest, _ := lastTwo(in.Runtime, c.Name)
		switch {
		case newest == nil:
			return true
		case core.IsSidecar(&c):
			return newest.State != runtimestate.StateRunning || c.StartupProbe != nil && !in.Started(c.Name, newest.ID)
		}
		return !newest.Succeeded()
	})
}

// explainWaiting sets the reason that the last sync found for a container that
// should run and does not; how it ended becomes its last state. One that failed
// to start and is not restarted does not wait.
func explainWaiting(in Input, c *core.Container, status *core.ContainerStatus) {
	why, held := in.Waiting[c.Name]
	if !held || why.Reason == "" || in.Terminal || status.State.Running != nil {
		return
	}
	if ended := status.State.Terminated; ended != nil {
		if !core.Restarts(&in.Pod.Spec, c, ended.ExitCode) {
			return
		}
		status.LastTerminationState = corev1.ContainerState{Terminated: ended}
	}
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why.Reason, Message: why.Message}}
}

// settle gives a container of an ended pod its final state: one that ran or would
// have run is lost; one that was never started, because an init container before
// it failed, keeps waiting for ever.
func settle(in Input, status, old *core.ContainerStatus) {
	if status.State.Terminated != nil {
		return
	}
	last := status.LastTerminationState.Terminated
	if status.State.Waiting != nil && last != nil {
		status.State = corev1.ContainerState{Terminated: last}
		status.LastTerminationState = corev1.ContainerState{}
		return
	}
	if status.State.Waiting != nil && status.ContainerID == "" && (old == nil || old.ContainerID == "") && !initDone(in) {
		return
	}
	id := status.ContainerID
	if old != nil && id == "" {
		id = old.ContainerID
	}
	status.State = corev1.ContainerState{Terminated: lost(id, "The container could not be located when the pod was terminated")}
}

func terminated(c *runtimestate.ContainerStatus) *corev1.ContainerStateTerminated {
	reason := "Completed"
	if c.ExitCode != 0 {
		reason = "Error"
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: c.ExitCode, Reason: cmp.Or(c.Reason, reason), Message: c.Message, ContainerID: c.ID.String(),
		StartedAt: orEpoch(apiTime(c.StartedAt)), FinishedAt: orEpoch(apiTime(c.FinishedAt)),
	}
}

// orEpoch is the beginning of Unix' time for what never came about, as the start of a
// container that could not be started: kubectl would show the year 1.
func orEpoch(t metav1.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Unix(0, 0)
	}
	return t
}

func lost(id, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ExitCode: exitLost, Reason: runtimestate.ReasonContainerStatusUnknown, Message: message, ContainerID: id,
	}
}

// apiTime truncates to whole seconds, as the API does, so that a status is
// still equal when it comes back.
func apiTime(t time.Time) metav1.Time {
	if t.Unix() <= 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(t).Rfc3339Copy()
}

func started(in Input, c *core.Container, status *core.ContainerStatus) bool {
	if status.State.Running == nil {
		return false
	}
	return c.StartupProbe == nil || in.Started(c.Name, containerID(status))
}

func ready(in Input, c *core.Container, status *core.ContainerStatus, init bool) bool {
	if init && !core.IsSidecar(c) {
		return status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
	}
	if status.State.Running == nil || !*status.Started {
		return false
	}
	if newest := in.Runtime.Container(c.Name); newest != nil && newest.Again {
		return false
	}
	return c.ReadinessProbe == nil || in.Ready(c.Name, containerID(status))
}

func containerID(status *core.ContainerStatus) runtimestate.ContainerID {
	id, err := runtimestate.ParseContainerID(status.ContainerID)
	if err != nil {
		return runtimestate.ContainerID{} // no probe knows it
	}
	return id
}
