package webhook

import (
	"crypto/sha256"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
)

// maxAnswers is how many answers are remembered.
const maxAnswers = 8192

// answers remembers what the service said.
type answers struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[[sha256.Size]byte]answer
}

type answer struct {
	status authorizationv1.SubjectAccessReviewStatus
	until  time.Time
}

func (a *answers) get(question string) (authorizationv1.SubjectAccessReviewStatus, bool) {
	key, now := sha256.Sum256([]byte(question)), a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.entries[key]
	return e.status, ok && now.Before(e.until)
}

func (a *answers) put(question string, status authorizationv1.SubjectAccessReviewStatus, ttl time.Duration) {
	key, now := sha256.Sum256([]byte(question)), a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.entries) >= maxAnswers {
		a.evict(now)
	}
	if a.entries == nil {
		a.entries = map[[sha256.Size]byte]answer{}
	}
	a.entries[key] = answer{status, now.Add(ttl)}
}

// evict makes room: first what has run out, then, where that is not enough,
// anything.
func (a *answers) evict(now time.Time) {
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
