package core

import (
	"math"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for n, want := range map[int64]time.Duration{
		0: 0, 30: 30 * time.Second, -1: -time.Second,
		math.MaxInt64: maxSeconds * time.Second, math.MaxInt64 / 2: maxSeconds * time.Second, math.MinInt64: -maxSeconds * time.Second,
	} {
		if got := Seconds(n); got != want {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
}
