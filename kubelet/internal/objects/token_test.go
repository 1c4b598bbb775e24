package objects

import (
	"testing"
	"time"
	"unsafe"
)

// later is the time after the wall clock has gone on by wall and the monotonic one, which no function of package time
// lets differ, by monotonic.
func later(t *testing.T, from time.Time, wall, monotonic time.Duration) time.Time {
	t.Helper()
	to := from.Add(wall)
	*(*time.Duration)(unsafe.Add(unsafe.Pointer(&to), unsafe.Sizeof(uint64(0)))) += monotonic - wall
	if to.Sub(from) != monotonic || to.Round(0).Sub(from.Round(0)) != wall {
		t.Fatalf("%v after %v: this Go keeps its two clocks otherwise", to, from)
	}
	return to
}

// A suspended machine's monotonic clock stands still, and somebody may set the other.
func TestTokensAreReplacedByEitherClock(t *testing.T) {
	for name, c := range map[string]struct{ wall, monotonic time.Duration }{
		"suspended": {time.Hour, time.Minute}, "set back": {-time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			a, o := newAPI(t)
			fetched := time.Now()
			for i, at := range []time.Time{fetched, fetched.Add(time.Minute), later(t, fetched, c.wall, c.monotonic)} {
				a.clock.SetTime(at)
				want := []string{"token-1", "token-1", "token-2"}[i]
				if got, err := o.Token(t.Context(), pod("a"), "vault", 3600); err != nil || got != want {
					t.Errorf("call %d: %s, %v; want %s", i, got, err, want)
				}
			}
		})
	}
}
