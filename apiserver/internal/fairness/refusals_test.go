package fairness

import (
	"fmt"
	"testing"
	"time"
)

// TestRetryAfter: the longer requests are refused, the later clients shall come back, as with
// kube-apiserver.
func TestRetryAfter(t *testing.T) {
	var r refusals
	begin := time.Unix(1_800_000_000, 0)
	advice := func(second, requests int) (last int) {
		for range requests {
			last = r.add(begin.Add(time.Duration(second) * time.Second))
		}
		return last
	}
	var busy []int
	for second := range 64 {
		if wait := advice(second, 10); len(busy) == 0 || busy[len(busy)-1] != wait {
			busy = append(busy, wait)
		}
	}
	if got := fmt.Sprint(busy); got != "[1 2 4 8 16 32]" {
		t.Errorf("while requests are refused: %s", got)
	}
	for i, want := range []int{31, 30, 29} {
		if got := advice(1000+100*i, 1); got != want {
			t.Errorf("after quiet times: %d, want %d", got, want)
		}
	}
	var few refusals
	for second := range 20 {
		if got := few.add(begin.Add(time.Duration(second) * time.Second)); got != 1 {
			t.Errorf("with a refusal a second: %d", got)
		}
	}
}
