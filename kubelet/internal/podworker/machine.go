package podworker

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// Phase is where a pod is in its life on this node.
type Phase int

const (
	// Unknown: the workers have no entry for the pod.
	Unknown Phase = iota
	// Waiting: nothing has been done for the pod yet.
	Waiting
	// Syncing: the pod is being started and kept running.
	Syncing
	// Terminating: containers of the pod may run, and are being ended.
	Terminating
	// Terminated: no container runs and none will; the rest is cleaned up.
	Terminated
	// Finished: there is nothing left to do for the pod. The entry stays until the
	// pod's source has forgotten it, so that the pod is not started again.
	Finished
)

var phaseNames = [...]string{"Unknown", "Waiting", "Syncing", "Terminating", "Terminated", "Finished"}

func (p Phase) String() string { return phaseNames[p] }

// transitions lists every move a pod can make, and what makes it.
//
//	from         to           by
//	Unknown      Waiting      an update of a pod that is to run
//	Unknown      Terminating  an update of a pod that is being deleted, is to be killed,
//	                          has ended already, or that only the runtime knows
//	Waiting      Syncing      its worker, once no pod of the same full name is started
//	Waiting      Terminating  deletion or kill asked before it was started
//	Syncing      Terminating  deletion or kill asked; or SyncPod found the pod at its end
//	Terminating  Terminated   SyncTerminatingPod returned nil
//	Terminating  Unknown      SyncTerminatingRuntimePod returned nil
//	Terminated   Finished     SyncTerminatedPod returned nil
//	Finished     Unknown      the pod's source forgot it
//
// No move goes backwards: a pod that comes again under the same UID waits until
// the old one is forgotten, and begins at Unknown.
var transitions = map[Phase][]Phase{
	Unknown:     {Waiting, Terminating},
	Waiting:     {Syncing, Terminating},
	Syncing:     {Terminating},
	Terminating: {Terminated, Unknown},
	Terminated:  {Finished},
	Finished:    {Unknown},
}

// entry is everything that the workers know about one pod. Its methods decide
// and never block; Workers calls them under its lock.
type entry struct {
	uid      types.UID
	fullName types.NamespacedName
	phase    Phase

	// pending is the newest update that no step has taken yet; active is the
	// one that the last step took.
	pending, active *Update
	// next is the new pod that came under the UID after this one's end; it takes this
	// one's place once this one is forgotten. It has no next itself: it is not removed.
	next *entry
	// working says that a goroutine is working on this entry.
	working bool
	synced  bool // a step has been begun
	// cancel ends the step that is being done, if any.
	cancel context.CancelFunc

	// The combined options of all kills (KillOptions).
	removed bool
	grace   int64                 // seconds; 0 until termination is asked for
	status  func(*core.PodStatus) // the last that was asked for
	done    []chan<- struct{}     // one for each that waits
}

func newEntry(u *Update) *entry {
	return &entry{uid: u.uid(), fullName: u.fullName()}
}

func (e *entry) move(to Phase) {
	if slices.Contains(transitions[e.phase], to) {
		e.phase = to
		return
	}
	panic(fmt.Sprintf("pod worker of %s (%s): no way from %s to %s", e.fullName, e.uid, e.phase, to))
}

func (e *entry) terminationRequested() bool { return e.phase >= Terminating }

// take adds an update to the entry. It reports whether there is now a step to
// do. A running step is cancelled if the update makes it pointless.
func (e *entry) take(u *Update) bool {
	switch {
	case e.phase == Unknown && ends(u):
		e.move(Terminating)
	case e.phase == Unknown:
		e.move(Waiting)
	case e.isNext(u):
		e.keepForNext(u)
		return false
	case e.phase == Finished:
		e.noteKill(u)
		return false
	case u.Running != nil:
		// The pod is known: its worker handles what the runtime shows of it.
		return false
	}
	wasTerminating, hadGrace := e.terminationRequested(), e.grace
	if e.phase < Terminating && ends(u) {
		e.move(Terminating)
	}
	e.noteKill(u)
	if e.phase >= Terminating {
		e.grace = effectiveGrace(e.grace, u)
	}
	if e.cancel != nil && (!wasTerminating && e.terminationRequested() || hadGrace != 0 && e.grace < hadGrace) {
		e.cancel()
	}
	e.setPending(u)
	return true
}

// isNext says that u is about a new pod with the UID of one that has been
// removed from its source, or that only the runtime knew.
func (e *entry) isNext(u *Update) bool {
	if u.Pod == nil || !e.terminationRequested() {
		return false
	}
	onlyRunning := e.latest() != nil && e.latest().Pod == nil
	return onlyRunning || e.next != nil || e.removed && u.Type == Create
}

// keepForNext keeps u until this entry is forgotten, as what becomes of the next pod by it: however
// much comes meanwhile, that is one entry. Of a pod that is removed again nothing is kept.
func (e *entry) keepForNext(u *Update) {
	if e.next == nil {
		e.next = newEntry(u)
	}
	e.next.take(u)
	if e.next.removed {
		e.next.tellDone()
		e.next = nil
	}
}

func (e *entry) latest() *Update {
	if e.pending != nil {
		return e.pending
	}
	return e.active
}

func (e *entry) setPending(u *Update) {
	next := u.instead(e.pending)
	next.Kill = nil
	if old := e.latest(); old != nil && next.MirrorPod == nil && next.Type == Kill {
		next.MirrorPod = old.MirrorPod
	}
	e.pending = next
}

// instead is the update that takes the place of old, if there is one, which was never taken. It
// keeps old's reason and time: a creation followed by changes is still a creation.
func (u *Update) instead(old *Update) *Update {
	next := *u
	if old == nil {
		return &next
	}
	if old.Type == Create && next.Type != Kill {
		next.Type = Create
	}
	if !old.Start.IsZero() {
		next.Start = old.Start
	}
	return &next
}

// noteKill keeps the options of a kill, whatever becomes of the update.
func (e *entry) noteKill(u *Update) {
	if u.Type != Kill || u.Kill == nil {
		return
	}
	e.removed = e.removed || u.Kill.Removed
	if u.Kill.Done != nil {
		e.done = append(e.done, u.Kill.Done)
	}
	if e.phase == Finished {
		e.tellDone()
		return // its status is final
	}
	if u.Kill.Status != nil {
		e.status = u.Kill.Status
	}
}

// tellDone tells all who wait that there is nothing more to wait for.
func (e *entry) tellDone() {
	for _, done := range e.done {
		close(done)
	}
	e.done = nil
}

// begin takes the pending update as the next step.
func (e *entry) begin() Job {
	e.active, e.pending = e.pending, nil
	job := Job{
		Update: *e.active, Phase: e.phase, First: !e.synced, GracePeriod: e.grace,
		Removed: e.removed, Status: e.status,
	}
	e.synced = true
	return job
}

// finish records how a step ended. It reports whether the pod moved on, so
// that the next step is due at once.
func (e *entry) finish(job Job, outcome Outcome, err error) bool {
	if err != nil && e.phase == job.Phase && e.pending != nil && e.pending.Type == Sync {
		// The desired state is the same, and what happened may be the failure itself.
		e.active, e.pending = e.pending, nil
	}
	if err != nil || e.phase != job.Phase {
		return e.pending != nil
	}
	switch {
	case job.Phase == Syncing && !outcome.Terminal:
		return e.pending != nil
	case job.Phase == Syncing:
		e.move(Terminating)
		e.grace = effectiveGrace(e.grace, &job.Update)
	case job.Phase == Terminating && job.Running != nil:
		e.move(Unknown)
		e.pending = nil
		return false
	case job.Phase == Terminating:
		e.move(Terminated)
	case job.Phase == Terminated:
		e.move(Finished)
		e.tellDone()
		e.pending, e.status = nil, nil
		return false
	}
	if e.pending == nil {
		next := *e.active
		e.pending = &next
	}
	return true
}

// ends says that u requests the pod's end, or shows that it has ended.
func ends(u *Update) bool {
	if u.Type == Kill || u.Running != nil || u.Pod.DeletionTimestamp != nil {
		return true
	}
	return core.Ended(u.Pod.Status.Phase)
}

// effectiveGrace is the grace period after u: the shortest that was requested,
// or the pod's own if none was; at least one second, so that every container is
// asked to end before it is killed.
func effectiveGrace(current int64, u *Update) int64 {
	shortest := func(seconds *int64) {
		if seconds == nil {
			return
		}
		asked := max(1, *seconds)
		if current == 0 || asked < current {
			current = asked
		}
	}
	if u.Kill != nil && u.Kill.GracePeriod != nil {
		shortest(u.Kill.GracePeriod)
	} else if u.Pod != nil {
		shortest(u.Pod.DeletionGracePeriodSeconds)
	}
	if current == 0 && u.Pod != nil {
		shortest(u.Pod.Spec.TerminationGracePeriodSeconds)
	}
	return max(1, current)
}
