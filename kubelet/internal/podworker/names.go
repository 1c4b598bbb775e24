package podworker

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// holdsName says that a pod in this phase may have something running, so that no
// other pod may take its full name.
func (p Phase) holdsName() bool { return p == Syncing || p == Terminating || p == Terminated }

// queueUp has a pod that waits to start wait for its turn with its full name.
func (w *Workers) queueUp(e *entry) {
	if queue := w.waiting[e.fullName]; e.phase == Waiting && !slices.Contains(queue, e.uid) {
		w.waiting[e.fullName] = append(queue, e.uid)
	}
}

// mayStart says whether the next step of an entry, which has queued up, may be done
// now. A waiting pod must be alone with its full name, and first among those that
// wait for it.
func (w *Workers) mayStart(e *entry) bool {
	return e.phase != Waiting || len(w.names[e.fullName]) == 0 && w.waiting[e.fullName][0] == e.uid
}

// holdName notes that the pod is started, or about to be.
func (w *Workers) holdName(e *entry) {
	holders := w.names[e.fullName]
	if holders == nil {
		holders = map[types.UID]bool{}
		w.names[e.fullName] = holders
	}
	holders[e.uid] = true
	w.leaveQueue(e)
}

// releaseName lets the next pod that waits for the full name start.
func (w *Workers) releaseName(e *entry) {
	delete(w.names[e.fullName], e.uid)
	if len(w.names[e.fullName]) > 0 {
		return
	}
	delete(w.names, e.fullName)
	w.wakeNext(e.fullName)
}

func (w *Workers) leaveQueue(e *entry) {
	queue := w.waiting[e.fullName]
	at := slices.Index(queue, e.uid)
	if at < 0 {
		return
	}
	queue = slices.Delete(queue, at, at+1)
	if len(queue) == 0 {
		delete(w.waiting, e.fullName)
		return
	}
	w.waiting[e.fullName] = queue
}

func (w *Workers) wakeNext(fullName types.NamespacedName) {
	if queue := w.waiting[fullName]; len(queue) > 0 {
		if next, ok := w.entries[queue[0]]; ok {
			w.wake(next)
		}
	}
}

// forget drops a finished entry, and starts over with the pod that came under
// its UID in the meantime, if any.
func (w *Workers) forget(e *entry) {
	if e.phase == Finished {
		e.move(Unknown)
	}
	delete(w.entries, e.uid)
	w.queue.drop(e.uid)
	w.retry.Reset(e.uid)
	if e.next != nil {
		w.begins(e.next)
	}
}

// begins gives the pod that came again its place.
func (w *Workers) begins(next *entry) {
	w.entries[next.uid] = next
	if next.phase.holdsName() {
		w.holdName(next)
	} else {
		w.restarted(next.pending.Pod)
	}
	w.wake(next)
}
