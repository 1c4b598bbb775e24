package fairness

import (
	"context"
	"time"

	"kctl/apiserver/internal/request"
)

// Ticket is one request's passage through its level, from Find to Leave.
type Ticket struct {
	schema *schema
	flow   uint64
	watch  bool
	user   *request.User
	info   *request.Info

	// The following fields are guarded by the level's lock.
	arrived time.Time
	place   place
	waiter  *waiter // while it waits
	unfit   int     // the waiter's
}

// Find returns where a request belongs. It takes no seats yet.
func (c *Controller) Find(user *request.User, info *request.Info) Ticket {
	found := c.table.Load().find(user, info)
	return Ticket{schema: found, flow: found.flow(user, info), watch: info.Verb == "watch", user: user, info: info}
}

// SchemaID and LevelID are the uids of the objects by which the request was
// classified, as header values, which must not be changed.
func (t *Ticket) SchemaID() []string { return t.schema.schemaID }
func (t *Ticket) LevelID() []string  { return t.schema.levelID }

// Enter takes seats, waiting for them up to patience if the level has queues.
// It returns false if there are none. An admitted request must call Leave.
func (t *Ticket) Enter(ctx context.Context, seats int, patience time.Duration) bool {
	s, m := t.schema, t.schema.meters()
	seats = min(seats, s.most)
	m.asked.Observe(float64(seats))
	why := s.level.try(t, seats)
	var waited time.Duration
	if t.waiter != nil {
		m.waiting.Inc()
		m.waitingSeats.Add(float64(seats))
		m.queueSize.Observe(float64(t.place.behind + 1))
		why = s.level.wait(ctx, t, patience)
		m.waiting.Dec()
		m.waitingSeats.Sub(float64(seats))
		m.unfit.Add(float64(t.unfit))
		waited = s.level.clock.Since(t.arrived)
		request.Spent(ctx, request.Queue, waited)
	} else if t.place.queue != nil {
		m.queueSize.Observe(1) // as with upstream, it was in the queue for no time
	}
	if why != admitted {
		m.gaveUp.Observe(waited.Seconds())
		m.rejected.WithLabelValues(string(why)).Inc()
		return false
	}
	m.waited.Observe(waited.Seconds())
	m.dispatched.Inc()
	m.running.Inc()
	m.runningSeats.Add(float64(seats))
	return true
}

// RetryAfter is after how many seconds a client whose request was refused shall come back. It is to
// be asked once for each of them.
func (t *Ticket) RetryAfter() int { return t.schema.level.retryAfter() }

// Leave gives the seats back.
func (t *Ticket) Leave() {
	took := t.schema.level.leave(t).Seconds()
	m := t.schema.meters()
	m.running.Dec()
	m.runningSeats.Sub(float64(t.place.seats))
	if t.watch {
		m.tookWatch.Observe(took)
		return
	}
	m.took.Observe(took)
}
