package status

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// kubeletConditions are the conditions that the kubelet writes; all others it keeps.
var kubeletConditions = map[corev1.PodConditionType]bool{
	corev1.PodReadyToStartContainers: true,
	corev1.PodInitialized:            true,
	corev1.ContainersReady:           true,
	corev1.PodReady:                  true,
	corev1.PodScheduled:              true,
	corev1.PodResizePending:          true,
	corev1.PodResizeInProgress:       true,
	corev1.AllContainersRestarting:   true,
}

// passing are those of them that exist only while something is under way.
var passing = map[corev1.PodConditionType]bool{corev1.PodResizePending: true, corev1.PodResizeInProgress: true}

// Previous is what a new status builds on: the last one that was generated,
// with the conditions that others have in the API now.
func Previous(last, api *core.PodStatus) *core.PodStatus {
	previous := *last
	previous.Conditions = nil
	for _, c := range last.Conditions {
		if kubeletConditions[c.Type] {
			previous.Conditions = append(previous.Conditions, c)
		}
	}
	for _, c := range api.Conditions {
		if !kubeletConditions[c.Type] {
			previous.Conditions = append(previous.Conditions, c)
		}
	}
	return &previous
}

func setConditions(status *core.PodStatus, in Input) {
	before := in.Previous.Conditions
	var conditions []core.PodCondition
	add := func(t corev1.PodConditionType, v verdict) {
		conditions = append(conditions, condition(t, v, before, in))
	}
	if disrupted := findCondition(before, corev1.DisruptionTarget); disrupted != nil {
		conditions = append(conditions, *disrupted) // first, as upstream's
	}
	add(corev1.PodReadyToStartContainers, readyToStartContainers(in))
	anew := restartOf(in)
	initial := initialized(&in.Pod.Spec, status)
	if old := findCondition(before, corev1.PodInitialized); !initial.ok && old != nil && old.Status == corev1.ConditionTrue {
		initial = verdict{ok: true} // what was initialized once stays so, whatever its containers wait for
	}
	add(corev1.PodInitialized, initial)
	containers := containersReady(&in.Pod.Spec, status)
	gates := containers
	if containers.ok {
		gates = readinessGatesPassed(&in.Pod.Spec, before)
	}
	add(corev1.PodReady, gates)
	add(corev1.ContainersReady, containers)
	scheduled := verdict{ok: true}
	if old := findCondition(before, corev1.PodScheduled); old != nil && old.Status == corev1.ConditionTrue {
		scheduled = verdict{ok: true, reason: old.Reason, message: old.Message}
	}
	add(corev1.PodScheduled, scheduled)
	if anew.there {
		add(corev1.AllContainersRestarting, anew.verdict)
	}
	for _, c := range in.Resize {
		add(c.Type, verdict{ok: true, reason: c.Reason, message: c.Message})
	}
	for _, c := range before {
		if !kubeletConditions[c.Type] && c.Type != corev1.DisruptionTarget {
			conditions = append(conditions, c)
		}
	}
	status.Conditions = conditions
}

// verdict is a condition without its times.
type verdict struct {
	ok              bool
	reason, message string
}

func condition(t corev1.PodConditionType, v verdict, before []core.PodCondition, in Input) core.PodCondition {
	c := core.PodCondition{
		Type: t, Status: corev1.ConditionFalse, Reason: v.reason, Message: v.message,
		ObservedGeneration: in.Pod.Generation, LastTransitionTime: metav1.NewTime(in.Now).Rfc3339Copy(),
	}
	if v.ok {
		c.Status = corev1.ConditionTrue
	}
	if old := findCondition(before, t); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}

func findCondition(conditions []core.PodCondition, t corev1.PodConditionType) *core.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// readyToStartContainers says whether there is a sandbox with its network.
func readyToStartContainers(in Input) verdict {
	const reason = "PodSandboxNotReady"
	switch {
	case len(in.Runtime.Sandboxes) == 0:
		return verdict{reason: reason, message: "no pod sandbox exists"}
	case in.Runtime.ReadySandbox() == nil, !in.Pod.Spec.HostNetwork && len(in.Runtime.IPs) == 0:
		return verdict{reason: reason, message: "pod sandbox is not ready"}
	}
	return verdict{ok: true}
}

func initialized(spec *core.PodSpec, status *core.PodStatus) verdict {
	if status.Phase == corev1.PodSucceeded {
		return verdict{ok: true, reason: "PodCompleted"}
	}
	// Once a container has run, the pod has been initialised, even if its init
	// containers have been removed since.
	for i := range status.ContainerStatuses {
		if s := &status.ContainerStatuses[i]; s.State.Running != nil ||
			s.State.Terminated != nil && s.State.Terminated.Reason != "ContainerStatusUnknown" {
			return verdict{ok: true}
		}
	}
	var incomplete []string
	for i := range spec.InitContainers {
		s := &status.InitContainerStatuses[i]
		complete := s.Ready
		if core.IsSidecar(&spec.InitContainers[i]) {
			complete = ptr.Deref(s.Started, false)
		}
		if !complete {
			incomplete = append(incomplete, s.Name)
		}
	}
	if len(incomplete) > 0 {
		return verdict{reason: "ContainersNotInitialized", message: fmt.Sprintf("containers with incomplete status: [%s]",
			strings.Join(incomplete, " "))}
	}
	return verdict{ok: true}
}

func containersReady(spec *core.PodSpec, status *core.PodStatus) verdict {
	switch status.Phase {
	case corev1.PodSucceeded:
		return verdict{reason: "PodCompleted"}
	case corev1.PodFailed:
		return verdict{reason: "PodFailed"}
	}
	var unready []string
	for i := range spec.InitContainers {
		if s := &status.InitContainerStatuses[i]; core.IsSidecar(&spec.InitContainers[i]) && !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	for i := range status.ContainerStatuses {
		if s := &status.ContainerStatuses[i]; !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	if len(unready) > 0 {
		return verdict{reason: "ContainersNotReady", message: fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))}
	}
	return verdict{ok: true}
}

// readinessGatesPassed says whether the conditions that others write and the pod's
// readiness depends on are true.
func readinessGatesPassed(spec *core.PodSpec, conditions []core.PodCondition) verdict {
	var closed []string
	for _, gate := range spec.ReadinessGates {
		switch c := findCondition(conditions, gate.ConditionType); {
		case c == nil:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status))
		}
	}
	if len(closed) > 0 {
		return verdict{reason: "ReadinessGatesNotReady", message: strings.Join(closed, ", ")}
	}
	return verdict{ok: true}
}
