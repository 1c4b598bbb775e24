package fairness

import (
	"math/rand/v2"
	"testing"
	"time"

	"kctl/apiserver/internal/resources/flowcontrol"
)

// TestShares: kube-apiserver v1.37.0's figures for its levels with the default
// of 600 requests (metrics nominal_, lower_ and upper_limit_seats).
func TestShares(t *testing.T) {
	got := shareOut(600, flowcontrol.BuiltinLevels())
	want := map[string]share{
		"catch-all": {13, 13, 613}, "global-default": {49, 24, 649}, "leader-election": {25, 25, 625}, "node-high": {98, 73, 698},
		"system": {74, 50, 674}, "workload-high": {98, 49, 698}, "workload-low": {245, 24, 845}, "exempt": {0, 0, 600},
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %+v, want %+v", name, got[name], w)
		}
	}
}

// TestLend: an idle server's levels have kube-apiserver's seats, give or take
// two: its figures add up to one more than there are.
func TestLend(t *testing.T) {
	lower := []int{13, 24, 25, 73, 50, 49, 24}
	upper := []int{613, 649, 625, 698, 674, 698, 845}
	seen := []int{30, 56, 58, 170, 117, 114, 56}
	var claims []claim
	for i := range lower {
		claims = append(claims, claim{lower[i], lower[i], upper[i], float64(lower[i])})
	}
	sum := 0
	seats, _ := lend(600, claims)
	for i, n := range seats {
		sum += n
		if n < seen[i]-1 || n > seen[i]+1 {
			t.Errorf("level %d has %d seats, and upstream's %d", i, n, seen[i])
		}
	}
	if sum < 598 || sum > 602 {
		t.Errorf("%d seats of 600", sum)
	}
}

// TestLendKeepsBounds: no level gets less than its lower bound, more than its
// upper one, or less than a level that needs less.
func TestLendKeepsBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		claims := make([]claim, 1+random.IntN(8))
		total, least := 1+random.IntN(700), 0
		for i := range claims {
			c := claim{least: random.IntN(60)}
			c.lower = c.least + random.IntN(60)
			c.upper = c.lower + random.IntN(200)
			c.target = float64(c.lower) + random.Float64()*100
			claims[i] = c
			least += c.least
		}
		sum := 0
		seats, _ := lend(total, claims)
		for i, n := range seats {
			sum += n
			if n < claims[i].least || n > claims[i].upper {
				t.Fatalf("%d of %d for %+v", n, total, claims[i])
			}
		}
		if sum > max(total, least)+len(claims) {
			t.Fatalf("%d seats of %d for %+v", sum, total, claims)
		}
	}
}

func TestSeats(t *testing.T) {
	for size, want := range map[[2]int]int{
		{0, 0}: 1, {1, 1}: 1, {100, 1}: 1, {101, 1}: 2, {999, 0}: 10, {1000, 0}: 10, {1 << 30, 0}: 10,
		{1, 100_000}: 1, {1, 100_001}: 2, {25, 900_000}: 9, {25, MostBytes + 900_000}: 10, {101, 500_000}: 5,
	} {
		if got := Seats(size[0], size[1]); got != want {
			t.Errorf("a list of %d objects and %d bytes costs %d seats, want %d", size[0], size[1], got, want)
		}
	}
}

// TestMostSeats: kube-apiserver v1.37's formula, for its own levels among 600
// seats and for small ones. Without queues there is no other limit than the
// widest request.
func TestMostSeats(t *testing.T) {
	for _, c := range []struct{ nominal, hand, want int }{{245, 6, 37}, {98, 6, 15}, {49, 6, 8}, {25, 4, 4}, {8, 8, 1}, {0, 6, 1}, {13, 0, 10}} {
		if got := mostSeats(share{nominal: c.nominal}, c.hand); got != c.want {
			t.Errorf("%d of %d seats in hands of %d, want %d", got, c.nominal, c.hand, c.want)
		}
	}
}

// TestNominalSeatsComeBack: whatever others ask for, a level has as many of its
// nominal seats as it needed lately, and no level gets less than it never lends.
func TestNominalSeatsComeBack(t *testing.T) {
	flooded := claimOf(share{nominal: 245, lower: 24, upper: 845}, 12_800, 12_000)
	for _, c := range []struct{ needed, want int }{{0, 73}, {80, 80}, {98, 98}, {5000, 98}} {
		other := claimOf(share{nominal: 98, lower: 73, upper: 698}, c.needed, float64(min(c.needed, 98)))
		if seats, factor := lend(343, []claim{flooded, other}); seats[1] != c.want || seats[0] != 343-c.want {
			t.Errorf("%d seats were needed, and are %d, beside %d (factor %v)", c.needed, seats[1], seats[0], factor)
		}
	}
	// Exempt requests have taken most seats: what is left beyond the least is cut in proportion.
	seats, factor := lend(60, []claim{claimOf(share{100, 20, 700}, 100, 100), claimOf(share{50, 20, 650}, 60, 60)})
	if seats[0] != 35 || seats[1] != 25 || factor != 0 {
		t.Errorf("%v, factor %v", seats, factor)
	}
	if seats, _ := lend(30, []claim{claimOf(share{100, 20, 700}, 100, 100), claimOf(share{50, 20, 650}, 60, 60)}); seats[0] != 20 || seats[1] != 20 {
		t.Errorf("%v", seats)
	}
}

// TestDemand: averages are over time; the smoothed demand rises at once and
// sinks slowly.
func TestDemand(t *testing.T) {
	now := time.Unix(1000, 0)
	var d demand
	d.set(0, now)
	d.set(10, now.Add(5*time.Second))
	s := d.end(now.Add(10 * time.Second))
	if s.high != 10 || s.average != 5 || s.deviation != 5 {
		t.Errorf("%+v", s)
	}
	if got := s.smooth(0); got != 10 {
		t.Errorf("rises to %v", got)
	}
	d.set(0, now.Add(10*time.Second))
	next := d.end(now.Add(20 * time.Second))
	if next.average != 0 || next.smooth(10) != 9.77 {
		t.Errorf("%+v, sinks to %v", next, next.smooth(10))
	}
}
