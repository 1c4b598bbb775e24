package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// Restart is one restart of a container, with its moments.
type Restart struct {
	relay.Restart
	// Approximate says that it is read from API fields of whole seconds.
	Approximate bool
	Way         Timeline
}

// The hops that only a restart has. The others of its are those of a first start.
const (
	ended        relay.Hop = "kubelet.container-ended"
	backOffBegan relay.Hop = "kubelet.back-off-began"
	backOffOver  relay.Hop = "kubelet.back-off-over"
	readyAgain   relay.Hop = "kubelet.container-ready"
)

// Restarts are the restarts that the kubelet has told of and, for each container of which it has not told
// the last one, what the pod's status has of that, in the order of time.
func Restarts(told []relay.Restart, pod *core.Pod) []Restart {
	var all []Restart
	for _, r := range told {
		all = append(all, newRestart(r, false))
	}
	for status := range core.ContainerStatuses(&pod.Status) {
		r, ok := lastRestart(status)
		known := func(k relay.Restart) bool { return k.Container == r.Container && k.Number >= r.Number }
		if ok && !slices.ContainsFunc(told, known) {
			all = append(all, newRestart(r, true))
		}
	}
	slices.SortStableFunc(all, func(a, b Restart) int { return a.latest().Compare(b.latest()) })
	return all
}

// latest is when the last of the restart may have been: what is known in seconds comes after what is known
// of the same second.
func (r Restart) latest() time.Time {
	if r.Approximate {
		return r.Last().Add(time.Second - 1)
	}
	return r.Last()
}

// lastRestart is what a container's status has of its last restart, or of the one that it waits for.
func lastRestart(status *core.ContainerStatus) (r relay.Restart, ok bool) {
	how := status.LastTerminationState.Terminated
	if how == nil {
		return r, false
	}
	r = relay.Restart{
		Container: status.Name, Number: status.RestartCount, ExitCode: how.ExitCode, Reason: how.Reason,
		Began: start(how.StartedAt), Ended: how.FinishedAt.Time,
	}
	if how.Reason == "OOMKilled" {
		r.Cause = relay.CauseOOM
	}
	switch {
	case status.State.Waiting != nil:
		r.Number++
	case status.State.Running != nil:
		r.Started = start(status.State.Running.StartedAt)
	case status.State.Terminated != nil:
		r.Started = start(status.State.Terminated.StartedAt)
	}
	return r, true
}

func newRestart(r relay.Restart, approximate bool) Restart {
	var moments []Moment
	add := func(hop relay.Hop, at time.Time) {
		moments = append(moments, Moment{Hop: hop.Of(r.Container), At: at, Approximate: approximate})
	}
	add(ended, r.Ended)
	add(backOffBegan, r.BackOffFrom)
	if !r.Created.Before(r.BackOffUntil) { // else it has not been waited for, or not yet
		add(backOffOver, r.BackOffUntil)
	}
	add(relay.KubeletImagePulled, r.ImagePulled)
	add(relay.KubeletCreated, r.Created)
	add(relay.KubeletStarted, r.Started)
	add(readyAgain, r.Ready)
	return Restart{Restart: r, Approximate: approximate, Way: Layout(moments)}
}

// because says what has ended a run, by its cause.
var because = map[relay.Cause]string{
	"":                    "it ended",
	relay.CauseExit:       "it ended by itself",
	relay.CauseOOM:        "it ran out of memory",
	relay.CauseLiveness:   "it failed its liveness probe",
	relay.CauseStartup:    "it failed its startup probe",
	relay.CausePostStart:  "its postStart hook failed",
	relay.CauseDefinition: "its image or definition was changed",
	relay.CauseResize:     "its resources were changed",
	relay.CauseRestartAll: "another container's rule restarts all",
	relay.CauseSandbox:    "the pod's sandbox was lost",
}

// signalled is the first exit code of programs that signals have ended.
const signalled = 128

// Because says what has ended the run, how, and after how long.
func (r Restart) Because() string {
	why, ok := because[r.Cause]
	if !ok {
		why = string(r.Cause) // of a newer kubelet
	}
	if r.Cause == relay.CauseExit && r.ExitCode > signalled {
		why = "a signal that was not the kubelet's ended it"
	}
	if r.Ended.IsZero() {
		return why
	}
	how := fmt.Sprintf("exit code %d", r.ExitCode)
	if r.Reason != "" {
		how += ", " + r.Reason
	}
	why += " (" + how + ")"
	if !r.Began.IsZero() && !r.Ended.Before(r.Began) {
		why += " after " + r.about(r.Ended.Sub(r.Began))
	}
	return why
}

// Next says what came after the end, by the time since, or what it waits for.
func (r Restart) Next() string {
	var steps []string
	step := func(what string, at time.Time) {
		if at.IsZero() {
			return
		}
		if !r.Ended.IsZero() {
			what += " +" + r.about(max(at.Sub(r.Ended), 0))
		}
		steps = append(steps, what)
	}
	if wait := r.BackOffUntil.Sub(r.BackOffFrom); !r.BackOffFrom.IsZero() && !r.BackOffUntil.IsZero() {
		step("back-off of "+length(wait)+" from", r.BackOffFrom)
		if r.Created.IsZero() {
			return strings.Join(append(steps, "until "+r.BackOffUntil.UTC().Format("15:04:05.000 MST")), ", ")
		}
		until := "until"
		if r.Created.Before(r.BackOffUntil) {
			until = "cut short of"
		}
		step(until, r.BackOffUntil)
	}
	step("image there", r.ImagePulled)
	step("created", r.Created)
	step("started", r.Started)
	step("ready", r.Ready)
	if r.Started.IsZero() {
		steps = append(steps, "not started again so far")
	}
	return strings.Join(steps, ", ")
}

// When is when the run ended, as far as it is known.
func (r Restart) When() string {
	at := r.Last()
	if !r.Ended.IsZero() {
		at = r.Ended
	}
	if r.Approximate {
		return "~" + at.UTC().Format("2006-01-02 15:04:05 MST")
	}
	return at.UTC().Format("2006-01-02 15:04:05.000 MST")
}

func (r Restart) about(d time.Duration) string {
	if r.Approximate {
		return fmt.Sprintf("~%g s", d.Round(time.Second).Seconds())
	}
	return length(d)
}

// Title names the restart.
func (r Restart) Title() string { return fmt.Sprintf("Restart %d of %s", r.Number, r.Container) }

// restartCharts are the restarts as charts of a page, each with a scale of its own.
func restartCharts(restarts []Restart) []chart {
	var charts []chart
	for _, r := range restarts {
		charts = append(charts, chart{
			Title: r.Title(), Note: r.When() + ": " + r.Because() + "; " + r.Next(),
			Ticks: ticks(r.Way.Total), Legs: r.Way.legs(r.Way.Rows, r.Way.Total),
		})
	}
	return charts
}
