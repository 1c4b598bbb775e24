package fairness

import (
	"cmp"
	"context"
	"sync"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/clock"
)

// level is one priority level. Its lock is held briefly; requests wait without
// it.
type level struct {
	name  string
	clock clock.WithTicker

	mu     sync.Mutex
	exempt bool
	queues queues
	demand demand
	ratios ratios
	// present are the requests that wait or run; counts counts the outcomes.
	present  map[*Ticket]bool
	counts   struct{ dispatched, rejected, timedOut, cancelled int }
	refusals refusals

	// The following fields are used by the Controller only.
	share    share
	hand     int     // of queues that each flow has; 0 without queues
	high     int     // the highest demand of the last period
	smoothed float64 // see summary.smooth
}

// configure applies the stored object to the level. Requests that wait or run
// continue to.
func (l *level) configure(from *flowcontrolv1.PriorityLevelConfiguration, s share) {
	l.share, l.hand = s, 0
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exempt = from.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt
	if limited := from.Spec.Limited; limited != nil && limited.LimitResponse.Queuing != nil {
		q := limited.LimitResponse.Queuing
		l.hand = int(q.HandSize)
		l.queues.shape(int(q.Queues), int(q.HandSize), int(q.QueueLengthLimit))
		return
	}
	l.queues.shape(0, 0, 0)
}

// note updates the demand with the seats used and waited for, and the metrics.
// The lock is held.
func (l *level) note(now time.Time) {
	l.demand.set(l.queues.inUse+l.queues.waitingSeats, now)
	l.ratios.note(&l.queues)
}

// place is where an admitted request has its seats.
type place struct {
	queue   *queue
	seats   int
	behind  int // how many requests were ahead in the queue; -1 if it did not wait
	started time.Time
}

// try admits a request without waiting, refuses it, or makes it a waiter.
func (l *level) try(t *Ticket, seats int) refusal {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.arrived, t.place = now, place{seats: seats, behind: -1, started: now}
	if l.exempt {
		l.queues.inUse += seats
		l.queues.running++
	} else {
		queue, w, why := l.queues.enter(t.flow, seats)
		if why != admitted {
			l.counts.rejected++
			return why
		}
		t.place.queue, t.waiter = queue, w
		if w != nil {
			t.place.behind = queue.length - 1
		}
	}
	if t.waiter == nil {
		l.counts.dispatched++
	}
	l.present[t] = true
	l.note(now)
	return admitted
}

// wait waits for the turn of t, a waiter, up to patience and until ctx ends.
func (l *level) wait(ctx context.Context, t *Ticket, patience time.Duration) refusal {
	w := t.waiter
	timer := l.clock.NewTimer(patience)
	defer timer.Stop()
	why := admitted
	select {
	case <-w.ready:
	case <-timer.C():
		why = timedOut
	case <-ctx.Done():
		why = cancelled
	}
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.waiter, t.unfit = nil, w.unfit
	if why != admitted {
		gaveUp := l.queues.giveUp(w)
		l.note(now)
		if gaveUp {
			delete(l.present, t)
			if why == timedOut {
				l.counts.timedOut++
			} else {
				l.counts.cancelled++
			}
			return why
		}
	}
	l.counts.dispatched++
	t.place = place{queue: w.queue, seats: w.seats, started: now}
	return admitted
}

// leave gives the seats back.
func (l *level) leave(t *Ticket) (took time.Duration) {
	now, p := l.clock.Now(), t.place
	took = now.Sub(p.started)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.present, t)
	l.queues.leave(p.queue, p.seats, took.Seconds())
	l.note(now)
	return took
}

// limit changes the number of seats, and admits the requests that now have one.
// Of a level without seats, the metrics say how much of so many it uses.
func (l *level) limit(seats, withoutAny int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues.limit = seats
	l.ratios.whole = cmp.Or(seats, withoutAny)
	l.queues.dispatch()
	l.note(l.clock.Now())
}

// summarize ends a period of the demand.
func (l *level) summarize() summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.demand.end(l.clock.Now())
}

// retryAfter counts a refusal, and returns after how many seconds the client shall come back.
func (l *level) retryAfter() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusals.add(l.clock.Now())
}
