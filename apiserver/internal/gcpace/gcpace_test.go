package gcpace

import "testing"

func TestPace(t *testing.T) {
	for _, c := range []struct {
		busy bool
		live uint64
		want int
	}{
		{false, 10 << 20, restPercent},
		{false, 64 << 20, 50},
		{false, 1 << 30, largePercent},
		{true, 40 << 20, 140},
		{true, 80 << 20, 60},
		{true, 128 << 20, 30},
		{true, 1 << 30, largePercent},
		{true, 0, mostPercent},
	} {
		if got := pace(c.busy, c.live); got != c.want {
			t.Errorf("busy: %v, %d bytes live: %d%%, want %d%%", c.busy, c.live, got, c.want)
		}
	}
}
