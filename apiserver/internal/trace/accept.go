package trace

import (
	"slices"
	"time"

	"kctl/proto/relay"
)

// maxEarly is how long before the pod was born a program may have stamped a hop: static pods are
// started before they are in the API. What is earlier is a forgery, or the work of a clock that
// tells nothing.
const maxEarly = time.Hour

// Accept returns, of the stamps that came with a request, those that it can know of: the hops of
// the program that makes such requests, at times that can be true. It changes and reuses sent.
//
// A stamp was made before the request that carries it arrived. If the last one says otherwise, the
// sender's clock is ahead by that much at least, and all of them are put back by it: what lies
// between them stays as it was measured. Of a clock that is behind nothing can be told, as stamps
// may wait for the next request; they are taken as they are, if they are not more than maxEarly
// before born (a pod may wait long for its node).
func Accept(sent []relay.Stamp, program string, born, arrived time.Time) []relay.Stamp {
	taken := slices.DeleteFunc(sent, func(s relay.Stamp) bool { return s.Hop.Program() != program || !s.Hop.Known() })
	if len(taken) == 0 {
		return nil
	}
	last := slices.MaxFunc(taken, func(a, b relay.Stamp) int { return a.At.Compare(b.At) })
	if ahead := last.At.Sub(arrived); ahead > 0 {
		for i := range taken {
			taken[i].At = taken[i].At.Add(-ahead)
		}
	}
	floor := born.Add(-maxEarly)
	return slices.DeleteFunc(taken, func(s relay.Stamp) bool { return s.At.Before(floor) || s.At.After(arrived) })
}
