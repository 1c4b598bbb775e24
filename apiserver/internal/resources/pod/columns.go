package pod

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"kctl/apiserver/internal/resources/cell"
	"kctl/proto/core"
)

// nodeLost is the reason of a pod whose node is unreachable.
const nodeLost = "NodeLost"

func columns() []metav1.TableColumnDefinition {
	status, spec := core.PodStatus{}.SwaggerDoc(), core.PodSpec{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		cell.Name(),
		cell.Text("Ready", "The aggregate readiness state of this pod for accepting traffic."),
		cell.Text("Status", "The aggregate status of the containers in this pod."),
		cell.Text("Restarts",
			"The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."),
		cell.AgeColumn(),
		cell.Wide("IP", status["podIP"]),
		cell.Wide("Node", spec["nodeName"]),
		cell.Wide("Nominated Node", status["nominatedNodeName"]),
		cell.Wide("Readiness Gates", spec["readinessGates"]),
	}
}

func row(pod *core.Pod, now time.Time) []any {
	s := summarize(pod)
	return []any{
		pod.Name, fmt.Sprintf("%d/%d", s.ready, s.total), s.reason, s.restarts.text(now), cell.Age(now, pod.CreationTimestamp),
		cell.OrNone(pod.Status.PodIP), cell.OrNone(pod.Spec.NodeName), cell.OrNone(pod.Status.NominatedNodeName), gatesText(pod),
	}
}

// summary is the state of all containers in one line.
type summary struct {
	ready, total int
	reason       string
	restarts     restarts
}

// restarts counts restarts and remembers the last.
type restarts struct {
	count int
	last  time.Time
}

func (r *restarts) add(c *core.ContainerStatus) {
	r.count += int(c.RestartCount)
	if ended := c.LastTerminationState.Terminated; ended != nil && ended.FinishedAt.After(r.last) {
		r.last = ended.FinishedAt.Time
	}
}

func (r *restarts) text(now time.Time) string {
	if r.count == 0 || r.last.IsZero() {
		return fmt.Sprint(r.count)
	}
	return fmt.Sprintf("%d (%s ago)", r.count, duration.HumanDuration(now.Sub(r.last)))
}

// summarize returns the most informative state of a pod: while it initializes,
// that of its first unfinished init container; then that of its containers,
// with precedence for the first; and above all, that it is terminating.
func summarize(pod *core.Pod) summary {
	s := summary{reason: string(pod.Status.Phase), total: len(pod.Spec.Containers)}
	if pod.Status.Reason != "" {
		s.reason = pod.Status.Reason
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; core.IsSidecar(c) {
			sidecars[c.Name] = true
			s.total++
		}
	}
	sidecarRestarts, initializing := s.initContainers(pod, sidecars)
	if !initializing || isConditionTrue(&pod.Status, corev1.PodInitialized) {
		s.restarts = sidecarRestarts
		s.containers(pod)
	}
	switch {
	case pod.DeletionTimestamp == nil:
	case pod.Status.Reason == nodeLost:
		s.reason = "Unknown"
	case pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded:
		s.reason = "Terminating"
	}
	return s
}

func (s *summary) initContainers(pod *core.Pod, sidecars map[string]bool) (sidecarRestarts restarts, initializing bool) {
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		s.restarts.add(c)
		if sidecars[c.Name] {
			sidecarRestarts.add(c)
		}
		ended, waiting := c.State.Terminated, c.State.Waiting
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecars[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.reason = "Init:" + endReason(ended)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			s.reason = "Init:" + waiting.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return sidecarRestarts, true
	}
	return sidecarRestarts, false
}

func (s *summary) containers(pod *core.Pod) {
	running := false
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &pod.Status.ContainerStatuses[i]
		s.restarts.add(c)
		switch ended, waiting := c.State.Terminated, c.State.Waiting; {
		case waiting != nil && waiting.Reason != "":
			s.reason = waiting.Reason
		case ended != nil:
			s.reason = endReason(ended)
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	// One container completed while others go on.
	if s.reason == "Completed" && running {
		s.reason = "NotReady"
		if isConditionTrue(&pod.Status, corev1.PodReady) {
			s.reason = "Running"
		}
	}
}

func endReason(ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended.Reason != "":
		return ended.Reason
	case ended.Signal != 0:
		return fmt.Sprintf("Signal:%d", ended.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", ended.ExitCode)
}

func isConditionTrue(status *core.PodStatus, kind corev1.PodConditionType) bool {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func gatesText(pod *core.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return cell.None
	}
	open := 0
	for _, gate := range pod.Spec.ReadinessGates {
		if isConditionTrue(&pod.Status, gate.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(pod.Spec.ReadinessGates))
}
