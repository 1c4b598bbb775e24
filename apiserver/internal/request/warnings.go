package request

import (
	"context"
	"slices"
	"sync"
)

// maxWarnings is more than fits into the headers of an answer. A body of a few
// megabytes can cause hundreds of thousands.
const maxWarnings = 500

// Warnings collects the answer's Warning headers (API concepts, "Warning
// headers"). It is safe for concurrent use.
type Warnings struct {
	mu   sync.Mutex
	text []string
}

// Warn adds a warning to the answer, once; outside a request it does nothing.
func Warn(ctx context.Context, text string) {
	w := WarningsFrom(ctx)
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.text) < maxWarnings && !slices.Contains(w.text, text) {
		w.text = append(w.text, text)
	}
}

// All returns the warnings in the order in which they were given.
func (w *Warnings) All() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.text)
}
