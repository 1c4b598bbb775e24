package housekeeping

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/proto/backoff"
)

// retryPolicy is the back-off between failed attempts at one object.
var retryPolicy = backoff.Policy{Initial: 50 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.2}

// several is how many objects most loops work on at once, so that one that takes long keeps no
// others waiting; upstream's usual number.
const several = 5

// worker calls sync for each added key, for a key one call at a time, and once however often it
// was added meanwhile. It holds one entry per key, so its size is bounded by the number of
// objects.
type worker struct {
	clock    clock.Clock
	logger   *zap.Logger
	failures *backoff.Keyed[informer.Key]
	// atOnce bounds the calls of sync at a time, which are for different keys.
	atOnce int
	// sync works on one object. A positive duration asks to be called again after
	// it; so does an error, with growing delays.
	sync func(ctx context.Context, key informer.Key) (again time.Duration, err error)

	meter *queueMeter

	mu  sync.Mutex
	due map[informer.Key]time.Time
	// taken are keys that were due, and since when each is worked on; zero while it waits for that.
	taken map[informer.Key]time.Time
	wake  chan struct{}
}

func newWorker(name string, d *Dependencies, atOnce int,
	sync func(ctx context.Context, key informer.Key) (time.Duration, error)) *worker {
	return &worker{
		clock: d.Clock, logger: d.Logger.With(zap.String("loop", name)), atOnce: atOnce, sync: sync,
		failures: backoff.NewKeyed[informer.Key](retryPolicy, d.Clock), meter: d.Queues.meter(name),
		due: map[informer.Key]time.Time{}, taken: map[informer.Key]time.Time{}, wake: make(chan struct{}, 1),
	}
}

func (w *worker) add(key informer.Key) { w.addAfter(key, 0) }

// addAfter queues key for later, unless it is already queued for an earlier
// time.
func (w *worker) addAfter(key informer.Key, after time.Duration) {
	at := w.clock.Now().Add(after)
	w.mu.Lock()
	have, ok := w.due[key]
	if !ok || at.Before(have) {
		w.due[key] = at
	}
	w.mu.Unlock()
	if !ok {
		w.meter.added()
	}
	w.notify()
}

func (w *worker) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// load is how many keys are due, and how long those that are worked on have taken so far:
// together, and the longest.
func (w *worker) load(now time.Time) (depth int, open, longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.due {
		if !at.After(now) {
			depth++
		}
	}
	for _, since := range w.taken {
		if since.IsZero() {
			depth++
			continue
		}
		open += now.Sub(since)
		longest = max(longest, now.Sub(since))
	}
	return depth, open, longest
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) error {
	w.meter.began(w)
	defer w.meter.ended(w)
	var working sync.WaitGroup
	defer working.Wait()
	slots := make(chan struct{}, w.atOnce)
	for {
		ready, wait := w.takeDue()
		for _, next := range ready {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case slots <- struct{}{}:
			}
			working.Go(func() {
				defer func() { <-slots }()
				w.process(ctx, next)
			})
		}
		if len(ready) > 0 {
			continue
		}
		var timer <-chan time.Time
		stop := func() bool { return false }
		if wait > 0 {
			t := w.clock.NewTimer(wait)
			timer, stop = t.C(), t.Stop
		}
		select {
		case <-ctx.Done():
			stop()
			return ctx.Err()
		case <-w.wake:
			stop()
		case <-timer:
		}
	}
}

// dueKey is a key that is due since at.
type dueKey struct {
	informer.Key
	at time.Time
}

// takeDue takes the keys that are due, and returns how long until the next one is; zero if
// there is none. A key that is still worked on is due when that has ended.
func (w *worker) takeDue() (ready []dueKey, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	for key, at := range w.due {
		if _, ok := w.taken[key]; ok {
			continue
		}
		left := at.Sub(now)
		if left <= 0 {
			ready = append(ready, dueKey{key, at})
			delete(w.due, key)
			w.taken[key] = time.Time{}
			continue
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return ready, wait
}

func (w *worker) process(ctx context.Context, next dueKey) {
	key := next.Key
	defer w.release(key)
	again, err := w.measure(ctx, next)
	if again > 0 || err != nil {
		w.meter.retried()
	}
	if err != nil && ctx.Err() == nil {
		delay := w.failures.Fail(key)
		w.logger.Warn("an object could not be dealt with, trying again",
			zap.String("object", key.String()), zap.Duration("after", delay), zap.Error(err))
		w.addAfter(key, delay)
		return
	}
	w.failures.Reset(key)
	if again > 0 {
		w.addAfter(key, again)
	}
}

// release lets a key be taken again.
func (w *worker) release(key informer.Key) {
	w.mu.Lock()
	delete(w.taken, key)
	_, isDue := w.due[key]
	w.mu.Unlock()
	if isDue {
		w.notify()
	}
}

// measure calls sync.
func (w *worker) measure(ctx context.Context, next dueKey) (again time.Duration, err error) {
	began := w.clock.Now()
	w.mu.Lock()
	w.taken[next.Key] = began
	w.mu.Unlock()
	if w.meter == nil {
		return w.sync(ctx, next.Key)
	}
	w.meter.waited.Observe(began.Sub(next.at).Seconds())
	defer func() { w.meter.worked.Observe(w.clock.Since(began).Seconds()) }()
	return w.sync(ctx, next.Key)
}
