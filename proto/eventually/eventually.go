// Package eventually is how tests wait for what nothing tells them of: they ask again and again. Where
// a channel, a watch or testing/synctest can tell, they wait for that instead.
package eventually

import (
	"testing"
	"time"
)

const (
	pause    = time.Millisecond
	patience = time.Minute // bounds a failing test, on a busy machine
)

// Holds returns once holds does, which is called again and again. If it does not within a minute, or
// the test ends, the test fails; what says what was waited for.
func Holds(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatalf("the test ended before this was so: %s", what)
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
