package events

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
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
	ref, err := referenceTo(obj)
	if err != nil {
		r.logger.Error("event is about no API object", zap.String("reason", reason), zap.Error(err))
		return
	}
	ref.FieldPath = fieldPath
	p := delayedEvent{about: ref, eventType: eventType, reason: reason, message: fmt.Sprintf(format, args...), at: r.clock.Now()}
	if !r.delayed.add(p) {
		r.enqueue(p.about, nil, p.eventType, p.reason, p.message)
	}
}

// add reports whether there was room.
func (l *delayedQueue) add(p delayedEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) >= maxDelayed {
		return false
	}
	l.events = append(l.events, p)
	if len(l.events) == 1 {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// due reports whether there are events, and whether it is the first one's turn.
func (l *delayedQueue) due(now time.Time) (some, turn bool) {
	l.mu.Lock()
	n := len(l.events)
	waited := n > 0 && l.most > 0 && now.Sub(l.events[0].at) >= l.most
	l.mu.Unlock()
	return n > 0, waited || n > maxDelayed/2 || n > 0 && (l.busy == nil || !l.busy())
}

func (l *delayedQueue) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}

func (l *delayedQueue) pop() delayedEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.events[0]
	l.events[0] = delayedEvent{}
	if l.events = l.events[1:]; len(l.events) == 0 {
		l.events = nil // and with it what was taken before
	}
	return p
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
	p := r.delayed.pop()
	return r.event(p.about, p.eventType, p.reason, p.message, p.at)
}
