package fairness

import (
	"math"
	"slices"
)

// typicalSeconds is what a request is charged when it begins, since its
// duration is unknown; when it ends, the charge is corrected to the real
// duration.
const typicalSeconds = 0.005

// waiter is one request in a queue.
type waiter struct {
	queue      *queue
	seats      int
	prev, next *waiter
	unfit      int // how often it was its turn, and fewer seats were free than it needs
	admitted   bool
	ready      chan struct{} // closed when it is admitted
}

// queue holds the requests of the flows dealt to it, in order.
type queue struct {
	first, last  *waiter
	length       int
	waitingSeats int
	running      int
	runningSeats int
	// served is the work (seats times seconds) that the queue has received, on a
	// scale that all queues of the level share: the one with the least is next.
	served float64
}

// queues decides which of a level's requests run. The caller holds the level's
// lock.
//
// It is start-time fair queuing over seat-seconds. A queue that becomes busy
// starts at the value of the one served last, so that being idle earns no
// claim, and having been the only busy one costs none.
type queues struct {
	limit       int // seats; more may be in use for a while after it was reduced
	hand        int // how many queues a flow may use; 0 if requests don't wait
	lengthLimit int
	all         []*queue // made when they are first used
	backlog     []*queue // queues with waiting requests, oldest first

	inUse        int // seats
	running      int
	waiting      int
	waitingSeats int
	reached      float64 // the value of the queue that was served last, before that
}

// refusal is why a request does not get a seat, in the words of the metric
// apiserver_flowcontrol_rejected_requests_total.
type refusal string

const (
	admitted         refusal = ""
	concurrencyLimit refusal = "concurrency-limit"
	queueFull        refusal = "queue-full"
	timedOut         refusal = "time-out"
	cancelled        refusal = "cancelled"
)

// shape changes the queuing of the level. Waiting requests go on waiting.
func (q *queues) shape(number, hand, lengthLimit int) {
	if number != len(q.all) {
		q.all = make([]*queue, number)
	}
	q.hand, q.lengthLimit = min(hand, number, maxHand), lengthLimit
}

// enter handles a new request: it runs in the returned queue, waits as the
// returned waiter, or is refused.
func (q *queues) enter(hash uint64, seats int) (*queue, *waiter, refusal) {
	if q.hand == 0 {
		// As in upstream, one request may run even without any seats.
		if q.inUse > 0 && q.inUse+seats > q.limit {
			return nil, nil, concurrencyLimit
		}
		q.inUse += seats
		q.running++
		return nil, nil, admitted
	}
	own := q.choose(hash)
	if own.load() == 0 {
		own.served = max(own.served, q.reached)
	}
	if len(q.backlog) == 0 && q.fits(seats) {
		q.start(own, seats)
		return own, nil, admitted
	}
	if own.length >= q.lengthLimit {
		return nil, nil, queueFull
	}
	w := &waiter{queue: own, seats: seats, ready: make(chan struct{})}
	q.push(w)
	q.dispatch() // if the next one needs more seats than are free, another may go first
	return own, w, admitted
}

// fits reports whether so many seats are free. A request that needs more than
// exist runs alone.
func (q *queues) fits(seats int) bool {
	return q.inUse+seats <= q.limit || q.inUse == 0 && q.limit > 0
}

// choose deals the flow its hand of queues and returns the one with the least waiting
// work.
func (q *queues) choose(hash uint64) *queue {
	var best *queue
	dealt := deal(hash, len(q.all), q.hand)
	for _, card := range dealt.cards[:dealt.size] {
		candidate := q.all[card]
		if candidate == nil {
			candidate = &queue{}
			q.all[card] = candidate
		}
		if best == nil || candidate.load() < best.load() {
			best = candidate
		}
	}
	return best
}

func (q *queue) load() int { return q.waitingSeats + q.runningSeats }

func (q *queues) start(own *queue, seats int) {
	q.reached = max(q.reached, own.served)
	own.served += typicalSeconds * float64(seats)
	own.running++
	own.runningSeats += seats
	q.inUse += seats
	q.running++
}

// leave removes a request that ran for so many seconds.
func (q *queues) leave(own *queue, seats int, seconds float64) {
	q.inUse -= seats
	q.running--
	if own != nil {
		own.running--
		own.runningSeats -= seats
		own.served += (seconds - typicalSeconds) * float64(seats)
	}
	q.dispatch()
}

// dispatch starts waiting requests in turn, while there are seats.
func (q *queues) dispatch() {
	for len(q.backlog) > 0 && q.inUse < q.limit {
		next := q.next()
		w := next.first
		if !q.fits(w.seats) {
			w.unfit++
			return // no one overtakes the next one
		}
		q.remove(w)
		q.start(next, w.seats)
		w.admitted = true
		close(w.ready)
	}
}

// next is the queue that has received the least so far; among equals, the one
// with the longest wait.
func (q *queues) next() *queue {
	var next *queue
	least := math.Inf(1)
	for _, candidate := range q.backlog {
		if candidate.served < least {
			next, least = candidate, candidate.served
		}
	}
	return next
}

func (q *queues) push(w *waiter) {
	own := w.queue
	if own.length == 0 {
		q.backlog = append(q.backlog, own)
		own.first = w
	} else {
		w.prev, own.last.next = own.last, w
	}
	own.last = w
	own.length++
	own.waitingSeats += w.seats
	q.waiting++
	q.waitingSeats += w.seats
}

// remove removes w from anywhere in its queue.
func (q *queues) remove(w *waiter) {
	own := w.queue
	if w.prev == nil {
		own.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		own.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	own.length--
	own.waitingSeats -= w.seats
	q.waiting--
	q.waitingSeats -= w.seats
	if own.length == 0 {
		q.forget(own)
	}
}

// forget removes a queue without waiters from the backlog.
func (q *queues) forget(own *queue) {
	q.backlog = slices.DeleteFunc(q.backlog, func(b *queue) bool { return b == own })
}

// giveUp ends the waiting of w, which may let others run. It returns false if w
// has been admitted in the meantime.
func (q *queues) giveUp(w *waiter) bool {
	if w.admitted {
		return false
	}
	q.remove(w)
	q.dispatch()
	return true
}
