// Package backoff is the project's one way to wait longer after each failure.
//
// Every package may call it. It owns no goroutine: callers ask for a delay and
// wait on their own clock, with Sleep or a timer.
package backoff

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Policy says how delays grow: Initial, Initial·Factor, … up to Max, each
// spread at random over [d, d·(1+Jitter)).
type Policy struct {
	Initial time.Duration
	Max     time.Duration
	Factor  float64 // 2 if zero
	Jitter  float64 // 0 for none
}

// Delay is the wait after the given number of failures in a row; after zero
// failures there is none.
func (p Policy) Delay(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	factor := p.Factor
	if factor == 0 {
		factor = 2
	}
	d := float64(p.Initial)
	for i := 1; i < failures && d < float64(p.Max); i++ {
		d *= factor
	}
	d = min(d, float64(p.Max))
	if p.Jitter > 0 {
		d *= 1 + rand.Float64()*p.Jitter
	}
	return time.Duration(d)
}

// Passed reports whether it is at or later by either of the clocks that a time.Time reads. The
// monotonic one, by which Before goes, stands still while the machine is suspended, and somebody
// may set the other back: what is good until a time is not to be used for longer after either.
func Passed(now, at time.Time) bool {
	return !now.Before(at) || !now.Round(0).Before(at.Round(0))
}

// Sleep waits for d on the given clock. If ctx ends first, it returns ctx's
// error.
func Sleep(ctx context.Context, clock clock.Clock, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Keyed counts failures per key, and forgets a key whose last failure is more
// than twice Max ago. It is safe for concurrent use.
type Keyed[K comparable] struct {
	policy Policy
	clock  clock.PassiveClock

	mu      sync.Mutex
	entries map[K]entry
	swept   time.Time
}

type entry struct {
	failures int
	at       time.Time     // of the last failure
	delay    time.Duration // from the last failure on
}

// NewKeyed returns an empty Keyed that reads the time from clock.
func NewKeyed[K comparable](policy Policy, clock clock.PassiveClock) *Keyed[K] {
	return &Keyed[K]{policy: policy, clock: clock, entries: map[K]entry{}}
}

// Fail counts one more failure of key and returns how long to wait from now.
func (k *Keyed[K]) Fail(key K) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	k.sweep(now)
	e := k.entries[key]
	if k.stale(e, now) {
		e = entry{}
	}
	e.failures++
	e.at = now
	e.delay = k.policy.Delay(e.failures)
	k.entries[key] = e
	return e.delay
}

// Remaining is how much of key's current delay is left; zero if it may be
// tried now.
func (k *Keyed[K]) Remaining(key K) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.entries[key]
	if !ok {
		return 0
	}
	return max(0, e.at.Add(e.delay).Sub(k.clock.Now()))
}

// Delay is key's current delay, counted from its last failure; zero if it has
// not failed.
func (k *Keyed[K]) Delay(key K) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.entries[key].delay
}

// Reset forgets key's failures.
func (k *Keyed[K]) Reset(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.entries, key)
}

func (k *Keyed[K]) stale(e entry, now time.Time) bool {
	return now.Sub(e.at) > 2*k.policy.Max
}

// sweep drops stale keys, at most once in Max, so that the map stays as small
// as the set of keys that fail.
func (k *Keyed[K]) sweep(now time.Time) {
	if now.Sub(k.swept) < k.policy.Max {
		return
	}
	k.swept = now
	for key, e := range k.entries {
		if k.stale(e, now) {
			delete(k.entries, key)
		}
	}
}
