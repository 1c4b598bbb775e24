package fairness

import "time"

// mostRetryAfter is the largest number of seconds after which a refused client is told to come
// back, and refusalsPerSecond are the refusals that make it grow. Both are upstream's.
const (
	mostRetryAfter    = 32
	refusalsPerSecond = 3
)

// refusals are those of one level, from which follows when refused clients shall come back: later,
// the longer it goes on. A request is refused only if the queues are full, too.
type refusals struct {
	wait   int64 // in seconds; 0 stands for 1
	raised int64 // the second of the last increase
	// recent has the refusals of the last seconds, at the second modulo its length.
	recent [mostRetryAfter]tally
}

type tally struct{ second, requests int64 }

// add counts a refusal, and returns after how many seconds the client shall come back.
func (r *refusals) add(now time.Time) int {
	second := now.Unix()
	present := &r.recent[second%mostRetryAfter]
	if present.second != second {
		r.adjust(second)
		*present = tally{second: second}
	}
	present.requests++
	return int(r.wait)
}

// adjust doubles the wait, once in each such time, while many were refused in the time before this
// second that is as long, and shortens it by a second if there were few.
func (r *refusals) adjust(second int64) {
	r.wait = max(r.wait, 1)
	var refused int64
	for _, t := range r.recent {
		if t.second < second && second-t.second <= r.wait {
			refused += t.requests
		}
	}
	switch {
	case second-r.raised >= r.wait && refused >= refusalsPerSecond*r.wait:
		r.wait, r.raised = min(2*r.wait, mostRetryAfter), second
	case refused < r.wait && r.wait > 1:
		r.wait--
	}
}
