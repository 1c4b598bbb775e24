package admission

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// observation is how long a plugin or a phase took, on its way to a histogram.
type observation struct {
	histogram prometheus.Observer
	took      time.Duration
}

const (
	// batchSize is how many observations are counted together; a create makes two dozen.
	batchSize = 1024
	// mostPending bounds how many wait while others are counted.
	mostPending = 16 * batchSize
)

// observations collects observations until there are enough to count them together. A
// histogram is half a dozen places in memory, and those of all plugins are gone from the
// core's cache when the next request comes: counted one by one, they took longer than the
// plugins. It is safe for concurrent use; the zero value is ready.
type observations struct {
	mu      sync.Mutex
	pending []observation
	spare   []observation // counted, to be filled again

	counting sync.Mutex // held while a batch goes to the histograms
}

func (o *observations) add(one observation) {
	o.mu.Lock()
	o.pending = append(o.pending, one)
	pending := len(o.pending)
	o.mu.Unlock()
	switch {
	case pending < batchSize:
	case pending >= mostPending:
		o.count()
	case o.counting.TryLock(): // nobody waits for another that counts
		defer o.counting.Unlock()
		o.countPending()
	}
}

// count gives all that is pending to the histograms. When it returns, they have all that was
// added before it was called.
func (o *observations) count() {
	o.counting.Lock()
	defer o.counting.Unlock()
	o.countPending()
}

// countPending needs the lock of counting.
func (o *observations) countPending() {
	o.mu.Lock()
	batch := o.pending
	o.pending, o.spare = o.spare[:0], nil
	o.mu.Unlock()
	for _, one := range batch {
		one.histogram.Observe(one.took.Seconds())
	}
	o.mu.Lock()
	o.spare = batch
	o.mu.Unlock()
}
