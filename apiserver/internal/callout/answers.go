package callout

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxAnswers is how many answers are remembered.
const maxAnswers = 8192

// Answers remember what a service said. They are safe for concurrent use.
type Answers[T any] struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[[sha256.Size]byte]answer[T]
}

type answer[T any] struct {
	says  T
	until time.Time
}

// NewAnswers returns an empty memory.
func NewAnswers[T any](clock clock.PassiveClock) *Answers[T] {
	return &Answers[T]{clock: clock, entries: map[[sha256.Size]byte]answer[T]{}}
}

// Get is what was said to a question, while it counts.
func (a *Answers[T]) Get(question string) (T, bool) {
	key, now := sha256.Sum256([]byte(question)), a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.entries[key]
	return e.says, ok && now.Before(e.until)
}

// Put remembers an answer for ttl.
func (a *Answers[T]) Put(question string, says T, ttl time.Duration) {
	key, now := sha256.Sum256([]byte(question)), a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.entries) >= maxAnswers {
		a.evict(now)
	}
	a.entries[key] = answer[T]{says, now.Add(ttl)}
}

// evict makes room: first what has run out, then, where that is not enough,
// anything.
func (a *Answers[T]) evict(now time.Time) {
	for key, e := range a.entries {
		if !now.Before(e.until) {
			delete(a.entries, key)
		}
	}
	for key := range a.entries {
		if len(a.entries) < maxAnswers {
			return
		}
		delete(a.entries, key)
	}
}
