package fairness

import "math"

// typicalSeconds is what a request is charged with when it begins, since nobody
// knows how long it will take; what it really took is charged when it ends.
const typicalSeconds = 0.005

// waiter is one request in a queue.
type waiter struct {
	queue      *queue
	seats      int
	prev, next *waiter
	admitted   bool
	ready      chan struct{} // closed when it is admitted
}

// queue is the requests of the flows that were dealt to it, in their order.
type queue struct {
	first, last  *waiter
	length       int
	waitingSeats int
	running      int
	runningSeats int
	// served is the work (seats times seconds) that the queue has had, on a scale
	// that all queues of the level share: the one that had least is next.
	served float64
}

// queues decides who of a level's requests runs. Whoever calls it holds the
// level's lock.
//
// It is start-time fair queuing over seat-seconds. A queue that becomes busy
// starts at what the last one to be served had, so that nobody saves up a claim
// by being idle, nor loses one by having been busy alone.
type queues struct {
	limit       int // seats; those in use may be more for a while after it sank
	hand        int // how many queues a flow may be put into; 0 where nobody waits
	lengthLimit int
	all         []*queue // made when they are first used
	backlog     []*queue // those in which somebody waits, oldest first

	inUse        int // seats
	running      int
	waiting      int
	waitingSeats int
	reached      float64 // what the queue that was served last had had before
}

// refusal says why a request does not get a seat, in the words of the metric
// apiserver_flowcontrol_rejected_requests_total.
type refusal string

const (
	admitted         refusal = ""
	concurrencyLimit refusal = "concurrency-limit"
	queueFull        refusal = "queue-full"
	timedOut         refusal = "time-out"
	cancelled        refusal = "cancelled"
)

// shape changes how the level queues. Who waits goes on waiting.
func (q *queues) shape(number, hand, lengthLimit int) {
	if number != len(q.all) {
		q.all = make([]*queue, number)
	}
	q.hand, q.lengthLimit = min(hand, number, maxHand), lengthLimit
}

// enter takes in a request: it runs in the queue returned, or waits as the
// waiter returned, or is refused.
func (q *queues) enter(hash uint64, seats int) (*queue, *waiter, refusal) {
	if q.hand == 0 {
		// As upstream does, one request may run where there are no seats at all.
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
	q.dispatch() // where the one whose turn it was needs more than is free, another may have its turn
	return own, w, admitted
}

// fits tells whether so many seats are free. A request that needs more than
// there are runs alone.
func (q *queues) fits(seats int) bool {
	return q.inUse+seats <= q.limit || q.inUse == 0 && q.limit > 0
}

// choose deals the flow its hand of queues and takes the one with least to do.
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

// leave takes a request out that ran for so many seconds.
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

// dispatch lets those run for whom there are seats, by turns.
func (q *queues) dispatch() {
	for len(q.backlog) > 0 && q.inUse < q.limit {
		next := q.next()
		w := next.first
		if !q.fits(w.seats) {
			return // nobody overtakes the one whose turn it is
		}
		q.remove(w)
		q.start(next, w.seats)
		w.admitted = true
		close(w.ready)
	}
}

// next is the queue that had least so far; of several, the one in which
// somebody has waited longest.
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

// remove takes w out of its queue, wherever in it it stands.
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

// forget takes a queue without waiters out of the backlog.
func (q *queues) forget(own *queue) {
	for i, b := range q.backlog {
		if b == own {
			q.backlog = append(q.backlog[:i], q.backlog[i+1:]...)
			return
		}
	}
}

// giveUp ends the waiting of w, which others may have waited for. It reports
// false where w has been admitted in the meantime.
func (q *queues) giveUp(w *waiter) bool {
	if w.admitted {
		return false
	}
	q.remove(w)
	q.dispatch()
	return true
}
