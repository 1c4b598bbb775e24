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

// claim is one level's demand when seats are lent.
type claim struct {
	lower, upper int
	target       float64 // no less than lower
}

// lend gives each level its target times a common factor, no less than its
// lower and no more than its upper bound, so that they add up to the total
// (KEP-1040, "Seat Borrowing"). Seats that cannot be lent stay unused; lower
// bounds are kept even if they exceed the total.
func lend(total int, claims []claim) []int {
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
	out := make([]int, len(claims))
	for i, c := range claims {
		out[i] = int(math.Round(c.at(factor)))
	}
	return out
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

// mostSeats is the highest cost of a request of a level: no single one may take
// more than a quarter of its seats.
func mostSeats(s share) int { return max(1, s.nominal/4) }
