package status

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Input is everything that a pod's status is made from.
type Input struct {
	Pod *core.Pod
	// Previous is the last generated status or, before the first one, the API's.
	Previous *core.PodStatus
	Runtime  *runtimestate.PodStatus
	// Waiting is why containers don't run, as the last sync of the pod found it.
	Waiting map[string]runtimestate.Waiting
	// Ready and Started are the probes' results for a running container; without a
	// probe both are true.
	Ready   func(container string, id runtimestate.ContainerID) bool
	Started func(container string, id runtimestate.ContainerID) bool
	// Resources are what a container was granted and what it runs with.
	Resources func(container string) (granted, actual corev1.ResourceRequirements, known bool)
	// PodResources are the pod as it was granted and as it runs. May be nil.
	PodResources func() (granted, actual *core.Pod, known bool)
	// Resize says which part of a change of resources is not done, as the
	// conditions PodResizePending and PodResizeInProgress; their times don't
	// matter.
	Resize []core.PodCondition
	// Terminal says that no container of the pod runs, or will again.
	Terminal bool
	HostIPs  []string
	Now      time.Time
}

// Generate makes the status. Fields that aren't the kubelet's come from
// Previous. Input is not changed.
func Generate(in Input) core.PodStatus {
	status := *in.Previous.DeepCopy()
	now := metav1.NewTime(in.Now).Rfc3339Copy()
	if status.StartTime.IsZero() {
		status.StartTime = &now
	}
	if status.QOSClass == "" {
		status.QOSClass = cgroup.QOSClass(in.Pod)
	}
	status.ObservedGeneration = in.Pod.Generation
	setAddresses(&status, in)

	spec := &in.Pod.Spec
	status.InitContainerStatuses = containerStatuses(in, spec.InitContainers, in.Previous.InitContainerStatuses, true)
	status.ContainerStatuses = containerStatuses(in, spec.Containers, in.Previous.ContainerStatuses, false)
	status.EphemeralContainerStatuses = unprobed(containerStatuses(in, ephemeral(spec), in.Previous.EphemeralContainerStatuses, false))

	shareMessages(&status, len(spec.InitContainers)+len(spec.Containers))

	// A pod that has ended stays so, whatever else is found out.
	if !core.Ended(in.Previous.Phase) {
		initialized := in.Runtime.ReadySandbox() != nil && podactions.Initialized(spec, in.Runtime)
		status.Phase = phase(spec, &status, initialized, in.Terminal, restartOf(in))
	}
	setPodResources(in, &status)
	setConditions(&status, in)
	return status
}

// messagesOfPod bounds, in bytes, the termination messages of a pod's containers,
// which share it equally (Kubernetes docs, "Determine the Reason for Pod
// Failure").
const messagesOfPod = 12 << 10

// shareMessages cuts messages that are longer than their share to their end.
func shareMessages(status *core.PodStatus, containers int) {
	share := messagesOfPod / max(1, containers)
	cut := func(ended *corev1.ContainerStateTerminated) {
		if ended != nil && len(ended.Message) > share {
			ended.Message = strings.ToValidUTF8(ended.Message[len(ended.Message)-share:], "")
		}
	}
	for c := range core.ContainerStatuses(status) {
		cut(c.State.Terminated)
		cut(c.LastTerminationState.Terminated)
	}
}

// Ending says that the pod has ended or is being deleted: it is not started any more.
func Ending(pod *core.Pod) bool { return pod.DeletionTimestamp != nil || core.Ended(pod.Status.Phase) }

// unprobed leaves out whether containers have started and are ready, as upstream's
// kubelet does for ephemeral ones: they have no probes, and get no traffic
// (Kubernetes docs, "Debug Running Pods": Ready is False while one runs). They can't
// request resources either, which their status shows once they exist.
func unprobed(statuses []core.ContainerStatus) []core.ContainerStatus {
	for i := range statuses {
		statuses[i].Started, statuses[i].Ready = nil, false
		if statuses[i].ContainerID != "" {
			statuses[i].Resources = &corev1.ResourceRequirements{}
		}
	}
	return statuses
}

func ephemeral(spec *core.PodSpec) []core.Container {
	containers := make([]core.Container, len(spec.EphemeralContainers))
	for i := range spec.EphemeralContainers {
		containers[i] = core.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
	}
	return containers
}

// setAddresses keeps the addresses a pod had when its sandbox is gone.
func setAddresses(status *core.PodStatus, in Input) {
	if len(in.HostIPs) > 0 {
		status.HostIP = in.HostIPs[0]
		status.HostIPs = nil
		for _, ip := range in.HostIPs {
			status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: ip})
		}
	}
	ips := in.Runtime.IPs
	if in.Pod.Spec.HostNetwork {
		ips = in.HostIPs
	}
	if len(ips) == 0 {
		return
	}
	status.PodIP = ips[0]
	status.PodIPs = nil
	for _, ip := range slices.Compact(slices.Clone(ips)) {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip})
	}
}
