package relaystamps

import (
	"slices"
	"time"

	"kctl/proto/relay"
)

// maxEarly is how long before the pod was born a program may have stamped a hop: static pods are
// started before they are in the API. What is earlier is a forgery, or the work of a clock that
// tells nothing.
const maxEarly = time.Hour

// maxBackOff is how long a kubelet may say that it waits; Kubernetes allows five minutes.
const maxBackOff = time.Hour

// Accept returns, of what came with a request, that which it can know of: the hops of the program that
// makes such requests, and restarts if that is the kubelet, at times that can be true. It changes and
// reuses report.
//
// A moment was before the request that tells of it arrived. If the last one says otherwise, the
// sender's clock is ahead by that much at least, and all of them are put back by it: what lies
// between them stays as it was measured. Of a clock that is behind nothing can be told, as stamps
// may wait for the next request; they are taken as they are, if they are not more than maxEarly
// before born (a pod may wait long for its node).
func Accept(report relay.Report, program string, born, arrived time.Time) relay.Report {
	taken := slices.DeleteFunc(report.Stamps, func(s relay.Stamp) bool { return s.Hop.Program() != program || !s.Hop.Known() })
	var restarts []relay.Restart
	if program == relay.KubeletSeen.Program() {
		restarts = report.Restarts
	}
	floor := born.Add(-maxEarly)
	possible := func(at time.Time) bool { return !at.Before(floor) && !at.After(arrived) }
	if ahead := latest(taken, restarts).Sub(arrived); ahead > 0 {
		for i := range taken {
			taken[i].At = taken[i].At.Add(-ahead)
		}
		for i := range restarts {
			putBack(&restarts[i], ahead)
		}
	}
	taken = slices.DeleteFunc(taken, func(s relay.Stamp) bool { return !possible(s.At) })
	for i := range restarts {
		keep(&restarts[i], possible)
	}
	return relay.Report{Stamps: taken, Restarts: slices.DeleteFunc(restarts, func(r relay.Restart) bool { return r.Last().IsZero() })}
}

func latest(stamps []relay.Stamp, restarts []relay.Restart) (last time.Time) {
	for _, s := range stamps {
		if s.At.After(last) {
			last = s.At
		}
	}
	for i := range restarts {
		if at := restarts[i].Last(); at.After(last) {
			last = at
		}
	}
	return last
}

func putBack(r *relay.Restart, ahead time.Duration) {
	for _, at := range r.Times() {
		if !at.IsZero() {
			*at = at.Add(-ahead)
		}
	}
}

// keep forgets the times of a restart that can't be true. Only the end of a back-off may be to come.
func keep(r *relay.Restart, possible func(time.Time) bool) {
	until := r.BackOffUntil
	for _, at := range r.Times() {
		if !possible(*at) {
			*at = time.Time{}
		}
	}
	if wait := until.Sub(r.BackOffFrom); !r.BackOffFrom.IsZero() && wait >= 0 && wait <= maxBackOff {
		r.BackOffUntil = until
	}
}
