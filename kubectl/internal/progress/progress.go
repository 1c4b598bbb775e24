package progress

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubectl/internal/describe"
	"kctl/proto/core"
)

// State is how far a step is.
type State int

// The states of a step; steps only move forward.
const (
	Waiting State = iota // its turn has not come
	Active               // under way
	Done
)

// Step is one step of the pod's way as its owner sees it.
type Step struct {
	State State
	Text  string
	// Slow steps are worth a line when they begin, not only when they are done.
	Slow bool
}

// View is what is known about the pod.
type View struct {
	Steps []Step
	// Problem is why the pod is stuck, "" while nothing is known to be wrong. It
	// may pass.
	Problem string
	// Ended tells that nothing more is to come: the pod is ready, has
	// completed, or has failed for good (then Failed is set).
	Ended, Failed bool
}

// Look sees how far a pod is.
func Look(pod *core.Pod, events []core.Event) View {
	seen := reasons(events)
	finished := core.Ended(pod.Status.Phase)
	ready := core.PodReady(pod)
	started := finished || ready || allContainers(pod, hasStarted)
	created := started || seen["Created"] || allContainers(pod, isCreated)
	pulled := created || seen["Pulled"]
	node := nodeOf(pod, events)

	view := View{Steps: []Step{
		{State: Done, Text: "queued"},
		step(node != "", true, "scheduled to "+node, "scheduling"),
		markSlow(step(pulled, seen["Pulling"], "image there: "+images(pod), "pulling "+images(pod))),
		step(created, pulled, "created", "creating"),
		step(started, created, "started", "starting"),
		step(ready || finished, started, ending(pod), "getting ready"),
	}}
	view.Failed = pod.Status.Phase == corev1.PodFailed
	view.Ended = ready || finished
	if !ready && pod.Status.Phase != corev1.PodSucceeded {
		view.Problem = problem(pod, events)
	}
	return view
}

// Now is what is under way, and why it is stuck if that is known.
func (v View) Now() string {
	text := "nothing is known of it yet"
	for _, s := range v.Steps {
		if s.State == Waiting { // nobody is at it: what is between the steps is under way
			text += ", and the node prepares it"
			break
		}
		text = s.Text
		if s.State != Done {
			break
		}
	}
	if v.Problem != "" {
		text += ": " + v.Problem
	}
	return text
}

func step(done, active bool, doneText, activeText string) Step {
	switch {
	case done:
		return Step{State: Done, Text: doneText}
	case active:
		return Step{State: Active, Text: activeText}
	}
	return Step{Text: activeText}
}

func markSlow(s Step) Step {
	s.Slow = true
	return s
}

// nodeOf is the pod's node. The kubelet's events may arrive before the version
// of the pod with the node's name.
func nodeOf(pod *core.Pod, events []core.Event) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	for i := range events {
		if events[i].Source.Component == "kubelet" && events[i].Source.Host != "" {
			return events[i].Source.Host
		}
	}
	return ""
}

func ending(pod *core.Pod) string {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return "completed"
	case corev1.PodFailed:
		return "failed"
	}
	return "ready"
}

func images(pod *core.Pod) string {
	var names []string
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Image)
	}
	return strings.Join(names, ", ")
}

func reasons(events []core.Event) map[string]bool {
	seen := map[string]bool{}
	for i := range events {
		seen[events[i].Reason] = true
	}
	return seen
}

func allContainers(pod *core.Pod, is func(*core.ContainerStatus) bool) bool {
	statuses := pod.Status.ContainerStatuses
	for i := range statuses {
		if !is(&statuses[i]) {
			return false
		}
	}
	return len(statuses) > 0 && len(statuses) == len(pod.Spec.Containers)
}

func hasStarted(s *core.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
}

func isCreated(s *core.ContainerStatus) bool { return s.ContainerID != "" }

// problem looks at the places that report a pod's problems, the most specific one first.
func problem(pod *core.Pod, events []core.Event) string {
	if pod.DeletionTimestamp != nil {
		return Deletion(pod)
	}
	if pod.Status.Phase == corev1.PodFailed {
		return failure(pod)
	}
	for status := range core.ContainerStatuses(&pod.Status) {
		if text := containerProblem(status); text != "" {
			return text + killedByProbe(status, events)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return join(c.Reason, c.Message)
		}
	}
	// Problems with sandboxes and volumes are not in the status, only in events.
	for _, event := range slices.Backward(events) {
		if event.Type == corev1.EventTypeWarning && !toldByStatus[event.Reason] && !harmless[event.Reason] {
			return join(event.Reason, event.Message)
		}
	}
	return ""
}

// Deletion says what a pod that is being deleted waits for.
func Deletion(pod *core.Pod) string {
	if len(pod.Finalizers) == 0 {
		return "the pod is being deleted"
	}
	return "the pod is being deleted: it stays until its finalizers are removed by whoever has set them: " + strings.Join(pod.Finalizers, ", ")
}

// killedByProbe says that a container crashes because a probe has it killed: its exit code
// does not tell. That a probe has failed does not, either: that of a program that has crashed
// by itself does, too.
func killedByProbe(s *core.ContainerStatus, events []core.Event) string {
	last := s.LastTerminationState.Terminated
	if last == nil {
		return ""
	}
	for _, probe := range []string{"liveness", "startup"} {
		kill := latest(events, s.Name, "Killing", " failed "+probe+" probe")
		if kill == nil || describe.LastSeen(kill).Before(last.StartedAt.Time) { // an earlier run
			continue
		}
		if failed := latest(events, s.Name, "Unhealthy", probe+" probe failed"); failed != nil {
			return "; it was killed: " + strings.TrimSpace(failed.Message)
		}
		return "; it was killed: its " + probe + " probe failed"
	}
	return ""
}

// latest is the last event about a container whose message has the part, in any case.
func latest(events []core.Event, container, reason, part string) (found *core.Event) {
	for i := range events {
		e := &events[i]
		about := strings.HasSuffix(e.InvolvedObject.FieldPath, "ontainers{"+container+"}")
		if about && e.Reason == reason && strings.Contains(strings.ToLower(e.Message), part) &&
			(found == nil || !describe.LastSeen(e).Before(describe.LastSeen(found))) {
			found = e
		}
	}
	return found
}

// toldByStatus are the reasons of events that the pod's status explains better.
var toldByStatus = map[string]bool{"Failed": true, "BackOff": true, "FailedScheduling": true}

// harmless are the reasons of warnings that don't keep a pod from running: it only
// has other name servers than it asked for.
var harmless = map[string]bool{"MissingClusterDNS": true, "DNSConfigForming": true}

func containerProblem(s *core.ContainerStatus) string {
	waiting := s.State.Waiting
	if waiting == nil || waiting.Reason == "" || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" {
		return ""
	}
	text := join(waiting.Reason, waiting.Message)
	if last := s.LastTerminationState.Terminated; last != nil {
		text += fmt.Sprintf(" (container %s last ended with exit code %d", s.Name, last.ExitCode)
		if last.Message != "" || last.Reason != "Error" && last.Reason != "Completed" {
			text += ": " + join(last.Reason, last.Message)
		}
		text += ")"
	}
	return text
}

func failure(pod *core.Pod) string {
	if pod.Status.Reason != "" {
		return join(pod.Status.Reason, pod.Status.Message)
	}
	for status := range core.ContainerStatuses(&pod.Status) {
		if t := status.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("container %s ended with exit code %d (%s)", status.Name, t.ExitCode, join(t.Reason, t.Message))
		}
	}
	return "Failed"
}

func join(reason, message string) string {
	message = strings.TrimSpace(message)
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}
