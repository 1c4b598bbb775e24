package timeline

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// FromTrace turns stamps into moments.
func FromTrace(trace relay.Trace) []Moment {
	moments := make([]Moment, 0, len(trace.Stamps))
	for _, stamp := range trace.Stamps {
		moments = append(moments, Moment{Hop: stamp.Hop, At: stamp.At})
	}
	return moments
}

// FromAPI reads the moments that any cluster has for a pod: from its
// conditions, its containers' states and its events. Those without a fraction
// of a second are approximate.
func FromAPI(pod *core.Pod, events []core.Event) []Moment {
	var moments []Moment
	add := func(hop relay.Hop, at time.Time) {
		if !at.IsZero() {
			moments = append(moments, Moment{Hop: hop, At: at, Approximate: at.Nanosecond() == 0})
		}
	}
	for i := range events {
		if hop, ok := hopOfEvent(&events[i]); ok {
			add(hop, eventTime(&events[i]))
		}
	}
	add(relay.ServerStored, pod.CreationTimestamp.Time)
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case corev1.PodScheduled:
			add(relay.ServerBound, condition.LastTransitionTime.Time)
		case corev1.PodReadyToStartContainers:
			add(relay.KubeletSandboxCreated, condition.LastTransitionTime.Time)
		case corev1.PodReady:
			add(relay.KubeletReady, condition.LastTransitionTime.Time)
		}
	}
	if pod.Status.StartTime != nil {
		add(relay.KubeletAdmitted, pod.Status.StartTime.Time)
	}
	if at, grace := pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds; at != nil && grace != nil {
		add(relay.ServerDeleting, at.Add(-core.Seconds(*grace)))
	}
	for status := range core.ContainerStatuses(&pod.Status) {
		add(relay.KubeletStarted.Of(status.Name), startedAt(status))
	}
	return moments
}

func startedAt(status *core.ContainerStatus) time.Time {
	switch {
	case status.RestartCount > 0:
		return time.Time{} // a later start is not part of the pod's first way
	case status.State.Running != nil:
		return start(status.State.Running.StartedAt)
	case status.State.Terminated != nil:
		return start(status.State.Terminated.StartedAt)
	}
	return time.Time{}
}

// start is when a container was started, by its status: one that could not be has the runtime's zero there, 1970.
func start(at metav1.Time) time.Time {
	if at.Unix() <= 0 {
		return time.Time{}
	}
	return at.Time
}

func hopOfEvent(event *core.Event) (relay.Hop, bool) {
	container := strings.TrimSuffix(event.InvolvedObject.FieldPath, "}")
	_, container, _ = strings.Cut(container, "{")
	switch event.Reason {
	case "Scheduled":
		return relay.ServerBound, true
	case "Pulled":
		return relay.KubeletImagePulled.Of(container), container != ""
	case "Created":
		return relay.KubeletCreated.Of(container), container != ""
	case "Started":
		return relay.KubeletStarted.Of(container), container != ""
	}
	return "", false
}

func eventTime(event *core.Event) time.Time {
	if !event.EventTime.IsZero() {
		return event.EventTime.Time
	}
	return event.FirstTimestamp.Time
}

// Merge combines the stamps with what the API says, for the pod's way until it runs.
func Merge(stamps, api []Moment) Timeline { return merge(part(stamps, false), part(api, false)) }

// MergeEnd is Merge for the pod's end.
func MergeEnd(stamps, api []Moment) Timeline { return merge(part(stamps, true), part(api, true)) }

func part(moments []Moment, end bool) []Moment {
	return slices.DeleteFunc(slices.Clone(moments), func(m Moment) bool { return m.Hop.OfEnd() != end })
}

// merge combines the stamps with what the API says. An approximate moment is
// dropped if there is a stamp of the same hop. If cutting off its fraction put
// it before a moment that it followed, it is moved there: whole seconds must
// not reverse the relay.
func merge(stamps, api []Moment) Timeline {
	exact := make(map[relay.Hop]bool, len(stamps))
	for _, m := range stamps {
		exact[m.Hop] = true
	}
	merged := stamps
	for _, m := range api {
		if !exact[m.Hop] && !(len(stamps) > 0 && m.Approximate && isCoarse(m.Hop, exact)) {
			merged = append(merged, m)
		}
	}
	return Layout(inOrder(merged))
}

// isCoarse reports whether the hop's program made its own stamps, so that a
// time with a precision of a second would only contradict them.
func isCoarse(hop relay.Hop, exact map[relay.Hop]bool) bool {
	program, _, _ := strings.Cut(string(hop), ".")
	for known := range exact {
		if of, _, _ := strings.Cut(string(known), "."); of == program {
			return true
		}
	}
	return false
}

func inOrder(moments []Moment) []Moment {
	at := make(map[relay.Hop]time.Time, len(moments))
	for _, m := range moments {
		if _, twice := at[m.Hop]; !twice {
			at[m.Hop] = m.At
		}
	}
	for i := range moments {
		m := &moments[i]
		if !m.Approximate {
			continue
		}
		floor := latestBefore(m, at)
		if floor.After(m.At) && floor.Sub(m.At) < time.Second {
			m.At, at[m.Hop] = floor, floor
		}
	}
	return moments
}

func latestBefore(m *Moment, at map[relay.Hop]time.Time) time.Time {
	var floor time.Time
	own := newRow(*m).place
	for hop, t := range at {
		if hop != m.Hop && newRow(Moment{Hop: hop}).place < own && t.After(floor) && t.Sub(m.At) < time.Second {
			floor = t
		}
	}
	return floor
}
