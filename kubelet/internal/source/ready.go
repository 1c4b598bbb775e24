package source

import (
	"slices"
	"sync"
)

// Ready tells whether every source has been heard; before that, a pod that is
// in none of them may still be wanted. It is used by the sync loop, which adds
// a source when it has handled its first update. It is safe for concurrent use.
type Ready struct {
	mu       sync.Mutex
	expected []string
	seen     map[string]bool
}

// NewReady returns a Ready that waits for the sources given.
func NewReady(expected ...string) *Ready {
	return &Ready{expected: expected, seen: map[string]bool{}}
}

// Add notes that the source was heard.
func (r *Ready) Add(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[source] = true
}

// All says that every source was heard.
func (r *Ready) All() bool { return len(r.Missing()) == 0 }

// Missing are the sources that were not heard yet.
func (r *Ready) Missing() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.expected), func(s string) bool { return r.seen[s] })
}
