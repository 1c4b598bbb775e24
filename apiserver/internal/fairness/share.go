package fairness

import (
	"math"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/ptr"
)

// share is how many of the server's seats a level may have.
type share struct {
	nominal      int
	lower, upper int // it keeps at least min, and borrows up to max
}

// shareOut computes the shares of levels (KEP-1040, "Dispatching"): nominal
// seats by the levels' shares of the total, and what each may lend and borrow.
func shareOut(total int, levels []*flowcontrolv1.PriorityLevelConfiguration) map[string]share {
	sum := 0
	for _, l := range levels {
		sum += int(sharesOf(l))
	}
	out := make(map[string]share, len(levels))
	for _, l := range levels {
		out[l.Name] = shareOf(total, sum, l)
	}
	return out
}

func sharesOf(l *flowcontrolv1.PriorityLevelConfiguration) int32 {
	switch {
	case l.Spec.Limited != nil:
		return max(0, ptr.Deref(l.Spec.Limited.NominalConcurrencyShares, 30))
	case l.Spec.Exempt != nil:
		return max(0, ptr.Deref(l.Spec.Exempt.NominalConcurrencyShares, 0))
	}
	return 0
}

func shareOf(total, sum int, l *flowcontrolv1.PriorityLevelConfiguration) share {
	var s share
	if sum > 0 {
		s.nominal = int(math.Ceil(float64(total) * float64(sharesOf(l)) / float64(sum)))
	}
	var lendable, borrow *int32
	if l.Spec.Limited != nil {
		lendable, borrow = l.Spec.Limited.LendablePercent, l.Spec.Limited.BorrowingLimitPercent
	} else if l.Spec.Exempt != nil {
		lendable = l.Spec.Exempt.LendablePercent
	}
	s.lower = s.nominal - percent(s.nominal, ptr.Deref(lendable, 0))
	if s.nominal > 0 {
		s.lower = max(s.lower, 1) // a level that lent everything would have to wait to get any back
	}
	s.upper = s.nominal + total
	if borrow != nil {
		s.upper = s.nominal + percent(s.nominal, *borrow)
	}
	s.upper = max(s.upper, s.lower)
	return s
}

func percent(of int, n int32) int { return int(math.Round(float64(of) * float64(n) / 100)) }

// claim is what one level asks for when seats are lent.
type claim struct {
	least        int // what it never lends
	lower, upper int // lower is no less than least
	target       float64
}

// claimOf is the claim of a level that needed so many seats lately: at its
// highest, and smoothed. Of its nominal seats it gets back at once what it
// needed at its highest, however much others ask for.
func claimOf(s share, high int, smoothed float64) claim {
	c := claim{least: s.lower, lower: max(s.lower, min(s.nominal, high)), upper: s.upper}
	c.target = max(float64(c.lower), smoothed)
	return c
}

// lend gives each level its target times a common factor, which it returns, no
// less than its lower and no more than its upper bound, so that they add up to
// the total (KEP-1040, "Seat Borrowing"). If there are fewer seats than the
// lower bounds, what exceeds the least of each is cut in proportion. Seats that
// cannot be lent stay unused; the least is kept even if it exceeds the total.
func lend(total int, claims []claim) ([]int, float64) {
	least, lower := 0, 0
	for _, c := range claims {
		least, lower = least+c.least, lower+c.lower
	}
	out := make([]int, len(claims))
	if total <= lower {
		part := 0.0
		if total > least {
			part = float64(total-least) / float64(lower-least)
		}
		for i, c := range claims {
			out[i] = c.least + int(math.Round(part*float64(c.lower-c.least)))
		}
		return out, 0
	}
	factor := commonFactor(total, claims)
	for i, c := range claims {
		out[i] = int(math.Round(c.at(factor)))
	}
	return out, factor
}

// commonFactor searches the factor by which the claims add up to the total.
func commonFactor(total int, claims []claim) float64 {
	factor := 0.0
	for low, high := 0.0, float64(2*total+1); high-low > 1e-6; {
		factor = (low + high) / 2
		sum := 0.0
		for _, c := range claims {
			sum += c.at(factor)
		}
		if sum > float64(total) {
			high = factor
		} else {
			low = factor
		}
	}
	return factor
}

func (c claim) at(factor float64) float64 {
	return min(max(c.target*factor, float64(c.lower)), float64(c.upper))
}

// objectsPerSeat, bytesPerSeat and widest determine the cost of a list: upstream's
// 100 kB a seat (SizeBasedListCostEstimate), its older 100 objects a seat, and at most
// the 10 seats that it asks for lists from its cache.
const (
	objectsPerSeat = 100
	bytesPerSeat   = 100_000
	widest         = 10
)

// A list has the highest cost from so many objects or bytes on.
const (
	MostCounted = objectsPerSeat * widest
	MostBytes   = bytesPerSeat * widest
)

// Seats is what a list of so many objects and bytes costs.
func Seats(objects, bytes int) int {
	return min(widest, max(1, (objects+objectsPerSeat-1)/objectsPerSeat, (bytes+bytesPerSeat-1)/bytesPerSeat))
}

// mostSeats is the highest cost of a request of a level with queues: upstream's
// 15% of its seats, and no more than its flows' hands leave to each queue.
func mostSeats(s share, hand int) int {
	if hand < 1 {
		return widest
	}
	return max(1, min(int(math.Ceil(float64(s.nominal)*0.15)), s.nominal/hand))
}
