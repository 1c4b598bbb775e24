package admission

import (
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// TestObservationsAreCountedWhenTheyAreRead: none is missing or counted twice, also when they
// are read while others are added and counted in batches.
func TestObservationsAreCountedWhenTheyAreRead(t *testing.T) {
	registry := prometheus.NewRegistry()
	meter := NewMeter(registry, clock.RealClock{})
	a := &histograms{meter: meter, vec: meter.plugins, labels: []string{"A", "admit"}}
	const writers, each = 4, batchSize
	counted := func() uint64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if len(families) == 0 {
			return 0
		}
		h := families[0].GetMetric()[0].GetHistogram()
		if h.GetSampleSum() != 0.5*float64(h.GetSampleCount()) {
			t.Errorf("%d of half a second are %v seconds", h.GetSampleCount(), h.GetSampleSum())
		}
		return h.GetSampleCount()
	}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each + 1 {
				a.observe(Create, time.Second/2, false)
			}
		})
	}
	a.observe(Create, time.Second/2, false)
	if have := counted(); have == 0 {
		t.Error("what was observed is not counted")
	}
	all.Wait()
	if have := counted(); have != writers*(each+1)+1 {
		t.Errorf("%d are counted of %d", have, writers*(each+1)+1)
	}
}
