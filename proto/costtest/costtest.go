// Package costtest is for tests of how the cost of a call grows with what the call is given. It
// counts what is allocated, for time depends on what else the machine does.
package costtest

import (
	"math"
	"runtime"
	"testing"
)

const (
	// attempts: other goroutines can only add to what a call seems to allocate, so the least counts.
	attempts = 3
	// mostGrowth is between twice as much, for a cost that grows with the number, and four times,
	// for one that grows with its square.
	mostGrowth = 3
)

// NotSquare fails the test if what a call allocates grows with the square of a number of things
// that it is given. prepare returns the call for a number of them, large enough that they are most
// of its cost; what prepare itself allocates does not count.
func NotSquare(t *testing.T, number int, prepare func(number int) (call func())) {
	t.Helper()
	some, twice := allocated(prepare(number)), allocated(prepare(2*number))
	t.Logf("a call with %d allocates %d KiB, one with twice as many %d KiB", number, some>>10, twice>>10)
	if twice > mostGrowth*some {
		t.Errorf("twice as many made a call allocate %.1f times as much", float64(twice)/float64(some))
	}
}

func allocated(call func()) uint64 {
	least := uint64(math.MaxUint64)
	for range attempts {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
