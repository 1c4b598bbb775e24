package fairness

import (
	"math"
	"time"
)

// smoothing is how much of a level's demand is kept from one adjustment to the
// next when it falls: half of it is gone after five minutes (KEP-1040).
const smoothing = 0.977

// demand tracks how many seats a level could use: those in use, and those
// waited for.
type demand struct {
	now    float64
	since  time.Time
	began  time.Time
	high   float64
	sum    float64 // over time
	square float64
}

// set records that from now on the demand is seats.
func (d *demand) set(seats int, now time.Time) {
	d.advance(now)
	d.now = float64(seats)
	d.high = max(d.high, d.now)
}

func (d *demand) advance(now time.Time) {
	if d.began.IsZero() {
		d.began, d.since = now, now
		return
	}
	elapsed := now.Sub(d.since).Seconds()
	if elapsed <= 0 {
		return
	}
	d.since = now
	d.sum += d.now * elapsed
	d.square += d.now * d.now * elapsed
}

// summary summarises the demand of one period.
type summary struct{ high, average, deviation float64 }

// end ends a period and begins the next.
func (d *demand) end(now time.Time) summary {
	d.advance(now)
	s := summary{high: d.high, average: d.now}
	if length := now.Sub(d.began).Seconds(); length > 0 {
		s.average = d.sum / length
		s.deviation = math.Sqrt(max(0, d.square/length-s.average*s.average))
	}
	*d = demand{now: d.now, high: d.now, since: d.since, began: d.since}
	return s
}

// smooth is the smoothed demand after one more period: it rises at once and
// falls slowly.
func (s summary) smooth(before float64) float64 {
	envelope := min(s.high, s.average+s.deviation)
	return max(envelope, smoothing*before+(1-smoothing)*envelope)
}
