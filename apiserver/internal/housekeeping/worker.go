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

// worker calls sync for each added key, one at a time, and once however often
// the key was added meanwhile. It holds one entry per key, so its size is
// bounded by the number of objects.
type worker struct {
	clock    clock.Clock
	logger   *zap.Logger
	failures *backoff.Keyed[informer.Key]
	// sync works on one object. A positive duration asks to be called again after
	// it; so does an error, with growing delays.
	sync func(ctx context.Context, key informer.Key) (again time.Duration, err error)

	meter *queueMeter

	mu    sync.Mutex
	due   map[informer.Key]time.Time
	taken int // keys that were due and are not worked on yet
	wake  chan struct{}
}

func newWorker(name string, d *Dependencies, sync func(ctx context.Context, key informer.Key) (time.Duration, error)) *worker {
	return &worker{
		clock: d.Clock, logger: d.Logger.With(zap.String("loop", name)), sync: sync,
		failures: backoff.NewKeyed[informer.Key](retryPolicy, d.Clock), meter: d.Queues.meter(name),
		due: map[informer.Key]time.Time{}, wake: make(chan struct{}, 1),
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
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// depth is how many keys are due.
func (w *worker) depth(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	depth := w.taken
	for _, at := range w.due {
		if !at.After(now) {
			depth++
		}
	}
	return depth
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) error {
	w.meter.began(w, time.Time{})
	defer w.meter.ended(w)
	for {
		ready, wait := w.takeDue()
		for _, next := range ready {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			w.process(ctx, next)
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

// takeDue removes the keys that are due, and returns how long until the next one
// is; zero if there is none.
func (w *worker) takeDue() (ready []dueKey, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	for key, at := range w.due {
		left := at.Sub(now)
		if left <= 0 {
			ready = append(ready, dueKey{key, at})
			delete(w.due, key)
			continue
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	w.taken = len(ready)
	return ready, wait
}

func (w *worker) process(ctx context.Context, next dueKey) {
	key := next.Key
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

// measure calls sync.
func (w *worker) measure(ctx context.Context, next dueKey) (again time.Duration, err error) {
	began := w.clock.Now()
	w.mu.Lock()
	w.taken--
	w.mu.Unlock()
	if w.meter == nil {
		return w.sync(ctx, next.Key)
	}
	w.meter.waited.Observe(began.Sub(next.at).Seconds())
	w.meter.began(w, began)
	defer func() {
		w.meter.worked.Observe(w.clock.Since(began).Seconds())
		w.meter.began(w, time.Time{})
	}()
	return w.sync(ctx, next.Key)
}
