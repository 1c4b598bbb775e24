package events

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/core"
)

const (
	// maxDelayed bounds the events that may wait; from half of it on, they wait
	// no longer than others.
	maxDelayed = 20_000
	// delayedInterval is how long the first in the queue waits at most while the program
	// is busy.
	delayedInterval = 100 * time.Millisecond
)

// delayedEvent is an event in the least memory that can hold it.
type delayedEvent struct {
	about                      *core.ObjectReference
	eventType, reason, message string
	at                         time.Time
}

// delayedQueue are events that may wait, in their order.
type delayedQueue struct {
	busy func() bool // nil for never
	most time.Duration
	wake chan struct{}

	mu     sync.Mutex
	events []delayedEvent
}

// Rested says that the program may no longer be busy, so that waiting events can
// be sent at once.
func (r *Recorder) Rested() {
	if r.delayed.len() == 0 {
		return
	}
	select {
	case r.delayed.wake <- struct{}{}:
	default:
	}
}

// Laterf is Eventf for events about very many objects that nobody needs at once.
// They are sent after all other events, and slowly while the program is busy
// (Options.Busy).
func (r *Recorder) Laterf(obj runtime.Object, eventType, reason, format string, args ...any) {
	r.enqueueDelayed(obj, "", eventType, reason, format, args...)
}

// ContainerLaterf is ContainerEventf with the delay of Laterf.
func (r *Recorder) ContainerLaterf(pod *core.Pod, fieldPath, eventType, reason, format string, args ...any) {
	r.enqueueDelayed(pod, fieldPath, eventType, reason, format, args...)
}

func (r *Recorder) enqueueDelayed(obj runtime.Object, fieldPath, eventType, reason, format string, args ...any) {
	ref := r.referenceTo(obj, fieldPath, reason)
	if ref == nil {
		return
	}
	e := delayedEvent{about: ref, eventType: eventType, reason: reason, message: fmt.Sprintf(format, args...), at: r.clock.Now()}
	if !r.delayed.add(e) {
		r.enqueue(ref, nil, e.eventType, e.reason, e.message)
	}
}

// add reports whether there was room.
func (q *delayedQueue) add(e delayedEvent) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) >= maxDelayed {
		return false
	}
	q.events = append(q.events, e)
	if len(q.events) == 1 {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// due reports whether there are events, and whether it is the first one's turn.
func (q *delayedQueue) due(now time.Time) (some, turn bool) {
	q.mu.Lock()
	n := len(q.events)
	waited := n > 0 && q.most > 0 && now.Sub(q.events[0].at) >= q.most
	q.mu.Unlock()
	return n > 0, waited || n > maxDelayed/2 || n > 0 && (q.busy == nil || !q.busy())
}

func (q *delayedQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}

func (q *delayedQueue) pop() delayedEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.events[0]
	q.events[0] = delayedEvent{}
	if q.events = q.events[1:]; len(q.events) == 0 {
		q.events = nil // and with it what was taken before
	}
	return first
}

// next waits for the event to be sent next.
func (r *Recorder) next(ctx context.Context) (*core.Event, error) {
	var pace <-chan time.Time // never
	for ctx.Err() == nil {
		select {
		case event := <-r.queue:
			return event, nil
		default:
		}
		some, turn := r.delayed.due(r.clock.Now())
		if turn {
			return r.takeDelayed(), nil
		}
		if some && pace == nil {
			pace = r.clock.After(delayedInterval)
		}
		select {
		case <-ctx.Done():
		case event := <-r.queue:
			return event, nil
		case <-r.delayed.wake:
		case <-pace:
			return r.takeDelayed(), nil
		}
	}
	return nil, ctx.Err()
}

func (r *Recorder) takeDelayed() *core.Event {
	e := r.delayed.pop()
	return r.event(e.about, e.eventType, e.reason, e.message, e.at)
}
