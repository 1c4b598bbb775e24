package podworker

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// holdsName says that a pod in this phase keeps its full name for itself.
func (p Phase) holdsName() bool { return p == Syncing || p == Terminating || p == Terminated }

// mayStart says whether the entry's next step may be done now. A waiting pod
// must be alone with its full name, and first among those that wait for it.
func (w *Workers) mayStart(e *entry) bool {
	if e.phase != Waiting {
		return true
	}
	queue := w.waiting[e.fullName]
	if !slices.Contains(queue, e.uid) {
		queue = append(queue, e.uid)
		w.waiting[e.fullName] = queue
	}
	return len(w.names[e.fullName]) == 0 && queue[0] == e.uid
}

// holdName notes that the pod is started, or is as good as that.
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

func (w *Workers) wakeNext(fullName string) {
	if queue := w.waiting[fullName]; len(queue) > 0 {
		if next, ok := w.entries[queue[0]]; ok {
			w.wake(next)
		}
	}
}

// forget drops an entry that is at its end, and begins anew with the pod that
// came under its UID in the meantime.
func (w *Workers) forget(e *entry) {
	if e.phase == Finished {
		e.move(Unknown)
	}
	delete(w.entries, e.uid)
	w.queue.drop(e.uid)
	w.retry.Reset(e.uid)
	for _, u := range e.next {
		w.update(u)
	}
}
