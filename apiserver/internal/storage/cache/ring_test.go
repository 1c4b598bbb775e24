package cache

import (
	"testing"
	"time"
)

// TestRingCountsWhatItHolds: a change also keeps the previous object in memory.
func TestRingCountsWhatItHolds(t *testing.T) {
	const size = 50 << 10
	value, at := make([]byte, size), time.Unix(0, 0)
	for name, test := range map[string]struct {
		old  *Entry
		want int
	}{
		"added":    {nil, ringMaxBytes/size + 1},
		"modified": {&Entry{Value: value}, ringMaxBytes/(2*size) + 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := &ring{}
			for i := range 2000 {
				r.push(&change{revision: int64(i), at: at, frame: value, old: test.old})
			}
			if r.len() != test.want {
				t.Errorf("holds %d changes, want %d", r.len(), test.want)
			}
			for r.len() > 0 {
				r.drop()
			}
			if r.bytes != 0 {
				t.Errorf("counts %d bytes of no changes", r.bytes)
			}
		})
	}
}
