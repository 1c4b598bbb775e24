package server

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	for _, c := range []struct {
		since time.Duration
		live  uint64
		want  int
	}{
		{time.Minute, 10 << 20, restPercent},
		{100 * time.Millisecond, 32 << 20, 200},
		{100 * time.Millisecond, 80 << 20, 80},
		{time.Minute, 80 << 20, 80},
		{100 * time.Millisecond, 1 << 30, largePercent},
		{time.Minute, 1 << 30, largePercent},
		{100 * time.Millisecond, 0, mostPercent},
	} {
		if got := pace(c.since, c.live); got != c.want {
			t.Errorf("%s since the last, %d bytes live: %d%%, want %d%%", c.since, c.live, got, c.want)
		}
	}
}
