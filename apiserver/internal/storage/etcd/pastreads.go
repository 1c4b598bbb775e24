package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/proto/backoff"
)

// Only a few may read past changes at once, since each costs etcd as much as
// everything that happened since then; others wait for a turn, but not for long.
// Clients that take what is read slowly, or not at all, must not keep the others from
// theirs: once they have taken their time, they give way.
const (
	maxPastReads     = 4
	pastReadPatience = 2 * time.Second
	pastReadWait     = pastReadPatience + time.Second
	pastReadTimeout  = time.Minute
)

// pastReads are the present readers of past changes.
type pastReads struct {
	clock  clock.Clock
	places chan struct{} // holds one for each reader

	mu      sync.Mutex
	readers map[*pastRead]struct{} // that have not given way
}

// pastRead is one reader.
type pastRead struct {
	all     *pastReads
	giveWay context.CancelFunc
	end     func()        // gives the place back
	took    time.Duration // by its client so far
	since   time.Time     // when its client last got something to take; zero while etcd is read
}

func newPastReads(clock clock.Clock) *pastReads {
	return &pastReads{clock: clock, places: make(chan struct{}, maxPastReads), readers: map[*pastRead]struct{}{}}
}

// acquire waits for a turn, which lasts until ctx ends, or until giveWay is called and ends
// it.
func (p *pastReads) acquire(ctx context.Context, giveWay context.CancelFunc) (*pastRead, error) {
	waiting, cancel := context.WithTimeout(ctx, pastReadWait)
	defer cancel()
	select {
	case p.places <- struct{}{}:
	default:
		go p.makeRoom(waiting)
		select {
		case p.places <- struct{}{}:
		case <-waiting.Done():
			return nil, fmt.Errorf("%w: %d others read changes of the past", storage.ErrUnavailable, maxPastReads)
		}
	}
	r := &pastRead{all: p, giveWay: giveWay}
	r.end = sync.OnceFunc(r.leave)
	p.mu.Lock()
	p.readers[r] = struct{}{}
	p.mu.Unlock()
	context.AfterFunc(ctx, r.end)
	return r, nil
}

// makeRoom lets the slowest reader give way as soon as it has taken its time, for one who
// waits until ctx ends.
func (p *pastReads) makeRoom(ctx context.Context) {
	const often = 50 * time.Millisecond // is often enough to look at those that have little time left, and take none
	for ctx.Err() == nil {
		left := p.endSlowest()
		if left <= 0 || backoff.Sleep(ctx, p.clock, max(left, often)) != nil {
			return
		}
	}
}

// endSlowest lets the slowest reader give way if it has no time left; otherwise it returns how
// much it has.
func (p *pastReads) endSlowest() (left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	var slowest *pastRead
	left = pastReadPatience
	for r := range p.readers {
		if has := pastReadPatience - r.tookUntil(now); has < left {
			slowest, left = r, has
		}
	}
	if slowest != nil && left <= 0 {
		delete(p.readers, slowest)
		slowest.giveWay()
	}
	return left
}

// tookUntil is how long the client has taken. The mu of all is held.
func (r *pastRead) tookUntil(now time.Time) time.Duration {
	if r.since.IsZero() {
		return r.took
	}
	return r.took + now.Sub(r.since)
}

// toClient: what has been read is the client's to take.
func (r *pastRead) toClient() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.since = r.all.clock.Now()
}

// toEtcd: the client has taken it, and more is read.
func (r *pastRead) toEtcd() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.took, r.since = r.tookUntil(r.all.clock.Now()), time.Time{}
}

func (r *pastRead) leave() {
	r.all.mu.Lock()
	delete(r.all.readers, r)
	r.all.mu.Unlock()
	<-r.all.places
}
