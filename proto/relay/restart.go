package relay

import (
	"cmp"
	"slices"
	"time"
)

// The bounds of what is remembered of a pod's restarts, by the kubelet and by each API server:
// the last of each container, and of all its containers together. What a pod that restarts for a
// year costs is what it cost after the first MaxRestarts.
const (
	MaxRestartsOfContainer = 4
	MaxRestarts            = 16
)

// Cause is what ended a run of a container.
type Cause string

// What ends containers that are started again.
const (
	CauseExit       Cause = "exit"        // itself, or a signal that is not the kubelet's
	CauseOOM        Cause = "oom"         // the kernel: it had used up its memory
	CauseLiveness   Cause = "liveness"    // the kubelet, for the liveness probe
	CauseStartup    Cause = "startup"     // the kubelet, for the startup probe
	CausePostStart  Cause = "post-start"  // the kubelet, as its postStart hook has failed
	CauseDefinition Cause = "definition"  // the kubelet, as its image or another part of its definition has been changed
	CauseResize     Cause = "resize"      // the kubelet, for new resources that it gets only by a restart
	CauseRestartAll Cause = "restart-all" // the kubelet, by a rule of another container of the pod
	CauseSandbox    Cause = "sandbox"     // the pod's sandbox is lost, as after a reboot, and made anew
)

var causes = []Cause{
	CauseExit, CauseOOM, CauseLiveness, CauseStartup, CausePostStart, CauseDefinition, CauseResize, CauseRestartAll, CauseSandbox,
}

// Restart is how a run of a container has ended, and how the next came about. Times are zero until the
// moment comes, and where it is not known.
type Restart struct {
	Container string `json:"container"`
	Number    int32  `json:"number"`          // the container's restart count once it has been started again
	Cause     Cause  `json:"cause,omitempty"` // empty if the kubelet was not there to see
	ExitCode  int32  `json:"exitCode"`        // of the run that has ended
	Reason    string `json:"reason,omitempty"`

	Began        time.Time `json:"began,omitzero"`        // the run that has ended
	Ended        time.Time `json:"ended,omitzero"`        // it has ended
	BackOffFrom  time.Time `json:"backOffFrom,omitzero"`  // the kubelet began to wait
	BackOffUntil time.Time `json:"backOffUntil,omitzero"` // until when it was to wait
	ImagePulled  time.Time `json:"imagePulled,omitzero"`  // the image is there for the next run
	Created      time.Time `json:"created,omitzero"`
	Started      time.Time `json:"started,omitzero"`
	Ready        time.Time `json:"ready,omitzero"`
}

// Times are all of the restart's, in their order, to be read and set.
func (r *Restart) Times() []*time.Time {
	return []*time.Time{&r.Began, &r.Ended, &r.BackOffFrom, &r.BackOffUntil, &r.ImagePulled, &r.Created, &r.Started, &r.Ready}
}

// Last is the latest moment that has come: the back-off's end, which is told ahead, is none.
func (r *Restart) Last() time.Time {
	var last time.Time
	for _, at := range r.Times() {
		if at != &r.BackOffUntil && at.After(last) {
			last = *at
		}
	}
	return last
}

func (r *Restart) same(other Restart) bool {
	return r.Container == other.Container && r.Number == other.Number
}

// fill takes from another account of the same restart what this one lacks.
func (r *Restart) fill(other Restart) {
	if r.Ended.IsZero() && !other.Ended.IsZero() {
		r.ExitCode, r.Reason = other.ExitCode, other.Reason
	}
	if r.Cause == "" {
		r.Cause = other.Cause
	}
	theirs := other.Times()
	for i, at := range r.Times() {
		if at.IsZero() {
			*at = *theirs[i]
		}
	}
}

// Remember adds what is told of a restart to those known. Of two accounts of the same one, that
// counts which goes further, and the other tells only what it lacks, and the cause: a kubelet that was
// started since knows only what it has found. Within the bounds above, the oldest are forgotten first: of
// the container, and then of the container that has the most.
func Remember(have []Restart, told Restart) []Restart {
	if i := slices.IndexFunc(have, told.same); i >= 0 {
		less, more := have[i], told
		if told.Last().Before(have[i].Last()) {
			less, more = told, have[i]
		}
		more.fill(less)
		more.Cause = cmp.Or(less.Cause, more.Cause)
		have[i] = more
		return have
	}
	have = append(have, told)
	counts := map[string]int{}
	for i := range have {
		counts[have[i].Container]++
	}
	if counts[told.Container] > MaxRestartsOfContainer {
		return forget(have, func(r *Restart) bool { return r.Container == told.Container })
	}
	if len(have) > MaxRestarts {
		most := 0
		for _, n := range counts {
			most = max(most, n)
		}
		return forget(have, func(r *Restart) bool { return counts[r.Container] == most })
	}
	return have
}

// forget removes the oldest of those that may be.
func forget(have []Restart, may func(*Restart) bool) []Restart {
	oldest := -1
	for i := range have {
		if may(&have[i]) && (oldest < 0 || have[i].Last().Before(have[oldest].Last())) {
			oldest = i
		}
	}
	return slices.Delete(have, oldest, oldest+1)
}

// Report is what one request tells of a pod's way.
type Report struct {
	Stamps   []Stamp
	Restarts []Restart
}

// RestartLog is what a kubelet knows of a pod's restarts, and how much of it the API server was told.
// It is not safe for concurrent use.
type RestartLog struct {
	known, sent []Restart
}

// Note adds to what is known of a restart. The first to say something is right: who notices it
// again, as each look at a container in back-off, notices it late.
func (l *RestartLog) Note(r Restart) {
	if known := l.Find(r.Container, r.Number); known != nil {
		known.fill(r)
		return
	}
	l.known = Remember(l.known, r)
}

// Empty reports whether nothing is known, as of most pods.
func (l *RestartLog) Empty() bool { return len(l.known) == 0 }

// Find is what is known of a restart, or nil.
func (l *RestartLog) Find(container string, number int32) *Restart {
	i := slices.IndexFunc(l.known, (&Restart{Container: container, Number: number}).same)
	if i < 0 {
		return nil
	}
	return &l.known[i]
}

// Unsent are the restarts of which something is known that was not sent.
func (l *RestartLog) Unsent() []Restart {
	var out []Restart
	for _, r := range l.known {
		if !slices.Contains(l.sent, r) {
			out = append(out, r)
		}
	}
	return out
}

// Sent says that these have arrived.
func (l *RestartLog) Sent(restarts []Restart) {
	if len(restarts) == 0 {
		return
	}
	l.sent = slices.DeleteFunc(append(l.sent, restarts...), func(r Restart) bool { return !slices.Contains(l.known, r) })
}
