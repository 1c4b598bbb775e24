package webhookclient

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxAnswers is how many answers are remembered.
const maxAnswers = 8192

// Answers is a cache of a service's answers. It is safe for concurrent use.
type Answers[T any] struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[[sha256.Size]byte]answer[T]
}

type answer[T any] struct {
	value T
	until time.Time
}

// NewAnswers returns an empty cache.
func NewAnswers[T any](clock clock.PassiveClock) *Answers[T] {
	return &Answers[T]{clock: clock, entries: map[[sha256.Size]byte]answer[T]{}}
}

// Get returns the cached answer to a question, if it is still valid.
func (a *Answers[T]) Get(question string) (T, bool) {
	key, now := sha256.Sum256([]byte(question)), a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.entries[key]
	return e.value, ok && now.Before(e.until)
}

// Put caches an answer for ttl.
func (a *Answers[T]) Put(question string, says T, ttl time.Duration) {
	key, now := sha256.Sum256([]byte(question)), a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.entries) >= maxAnswers {
		a.evict(now)
	}
	a.entries[key] = answer[T]{says, now.Add(ttl)}
}

// evict makes room: it drops expired entries first and then, if that is not
// enough, any.
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
