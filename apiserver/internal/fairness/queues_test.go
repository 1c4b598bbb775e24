package fairness

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// bench is queues, and a simple model of who is in them to compare with.
type bench struct {
	t       *testing.T
	queues  queues
	running []place
	waiting []*waiter
}

func newBench(t *testing.T, limit, number, hand, length int) *bench {
	b := &bench{t: t}
	b.queues.limit = limit
	b.queues.shape(number, hand, length)
	return b
}

func (b *bench) enter(flow uint64, seats int) (*waiter, refusal) {
	own, w, why := b.queues.enter(flow, seats)
	switch {
	case w != nil:
		b.waiting = append(b.waiting, w)
	case why == admitted:
		b.running = append(b.running, place{queue: own, seats: seats})
	}
	b.settle()
	return w, why
}

func (b *bench) leave(i int, seconds float64) {
	p := b.running[i]
	b.running = append(b.running[:i], b.running[i+1:]...)
	b.queues.leave(p.queue, p.seats, seconds)
	b.settle()
}

func (b *bench) giveUp(i int) {
	w := b.waiting[i]
	b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
	if !b.queues.giveUp(w) {
		b.t.Fatal("somebody was admitted and not told")
	}
	b.settle()
}

// settle handles new admissions, and checks the invariants.
func (b *bench) settle() {
	b.t.Helper()
	still := b.waiting[:0]
	for _, w := range b.waiting {
		select {
		case <-w.ready:
			b.running = append(b.running, place{queue: w.queue, seats: w.seats})
		default:
			still = append(still, w)
		}
	}
	b.waiting = still
	inUse, wanted := 0, 0
	for _, p := range b.running {
		inUse += p.seats
	}
	for _, w := range b.waiting {
		wanted += w.seats
	}
	q := &b.queues
	if q.inUse != inUse || q.running != len(b.running) || q.waiting != len(b.waiting) || q.waitingSeats != wanted {
		b.t.Fatalf("%d seats of %d requests in use and %d seats of %d waited for, and the counters say %d, %d, %d, %d",
			inUse, len(b.running), wanted, len(b.waiting), q.inUse, q.running, q.waitingSeats, q.waiting)
	}
	if (len(q.backlog) > 0) != (len(b.waiting) > 0) {
		b.t.Fatalf("%d queues of %d who wait", len(q.backlog), len(b.waiting))
	}
	if len(q.backlog) > 0 && q.inUse < q.limit && q.fits(q.next().first.seats) {
		b.t.Fatal("seats are free, and somebody waits for them")
	}
}

// TestNoSeatIsLost: whatever comes, goes and gives up, in any order, the
// counters are right after each step, no seat stays free while somebody waits
// for it, and in the end everything is empty.
func TestNoSeatIsLost(t *testing.T) {
	for n := range 200 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			b := newBench(t, 1+random.IntN(12), 1+random.IntN(8), 1+random.IntN(4), 1+random.IntN(6))
			for range 400 {
				switch dice := random.IntN(10); {
				case dice < 5:
					before := b.queues.inUse
					_, why := b.enter(uint64(random.IntN(20))*0x9E3779B97F4A7C15, 1+random.IntN(4))
					if why != admitted && before != b.queues.inUse {
						t.Fatal("a refused request took seats")
					}
				case dice < 8 && len(b.running) > 0:
					b.leave(random.IntN(len(b.running)), random.Float64())
				case dice < 9 && len(b.waiting) > 0:
					b.giveUp(random.IntN(len(b.waiting)))
				case random.IntN(10) == 0: // levels borrow and are reconfigured meanwhile
					b.queues.limit = random.IntN(14)
					b.queues.shape(random.IntN(6), 1+random.IntN(4), 4)
					b.queues.dispatch()
					b.settle()
				}
			}
			b.queues.limit = max(1, b.queues.limit)
			b.queues.dispatch()
			b.settle()
			for len(b.running) > 0 {
				b.leave(0, 1)
			}
			if q := &b.queues; q.inUse+q.running+q.waiting+q.waitingSeats+len(q.backlog)+len(b.waiting) != 0 {
				t.Errorf("left behind: %+v", q)
			}
		})
	}
}

// simulate runs flows that always have under[i] requests in flight, each of
// which takes a second, and returns how many of each were served. Each flow has
// queues of its own.
func simulate(t *testing.T, seats, rounds int, under []int) []int {
	b := newBench(t, seats, len(under), 1, 1000)
	flowOf := map[*queue]int{}
	served := make([]int, len(under))
	for flow, n := range under {
		for range n {
			b.enter(uint64(flow), 1)
		}
		flowOf[b.queues.all[flow]] = flow
	}
	for range rounds {
		for range len(b.running) {
			flow := flowOf[b.running[0].queue]
			served[flow]++
			b.leave(0, 1)
			b.enter(uint64(flow), 1)
		}
	}
	return served
}

// TestElephantsAndMice: a flow with a hundred requests in flight gets what
// flows with one or two leave over.
func TestElephantsAndMice(t *testing.T) {
	// Five flows and four seats: the fair share is 240 of 1200 each.
	for flow, n := range simulate(t, 4, 300, []int{100, 2, 3, 2, 100}) {
		if n < 235 || n > 245 {
			t.Errorf("flow %d was served %d times of 1200", flow, n)
		}
	}
	// A flow with a single request in flight asks for no further seat while that
	// runs, and gets no less because of the others.
	for flow, n := range simulate(t, 4, 300, []int{100, 1, 1, 1, 100}) {
		if n < 190 {
			t.Errorf("flow %d was served %d times of 1200", flow, n)
		}
	}
}

// TestLateMouse: a flow that comes when a queue has been busy for long neither
// has to wait for what that queue was given, nor gets as much before everybody
// else.
func TestLateMouse(t *testing.T) {
	b := newBench(t, 1, 2, 1, 1000)
	for range 100 {
		b.enter(0, 1)
	}
	for range 50 {
		b.leave(0, 1)
	}
	var mice []*waiter
	for range 10 {
		w, _ := b.enter(1, 1)
		mice = append(mice, w)
	}
	rounds := 0
	for ; !mice[9].admitted; rounds++ {
		b.leave(0, 1)
		if rounds == 1 && !mice[0].admitted {
			t.Error("the first has waited for more than the one who ran and one other")
		}
	}
	if rounds < 18 || rounds > 22 {
		t.Errorf("ten of one flow among others of another took %d rounds", rounds)
	}
}

// TestWideRequests: a request that needs more seats than are free is not
// overtaken for ever, and one that needs more than exist runs alone.
func TestWideRequests(t *testing.T) {
	b := newBench(t, 3, 4, 1, 10)
	b.enter(0, 1)
	wide, _ := b.enter(1, 10)
	var late []*waiter
	for range 5 {
		w, _ := b.enter(2, 1)
		late = append(late, w)
	}
	if wide == nil || late[0] == nil || late[0].admitted {
		t.Fatal("somebody overtook")
	}
	b.leave(0, 1)
	if !wide.admitted || late[0].admitted {
		t.Errorf("wide %v, late %v", wide.admitted, late[0].admitted)
	}
	b.leave(0, 1)
	if !late[2].admitted {
		t.Error("a late request waits although seats are free")
	}
}

func TestRefusals(t *testing.T) {
	b := newBench(t, 1, 1, 1, 1)
	for i, want := range []refusal{admitted, admitted, queueFull} {
		if _, why := b.enter(7, 1); why != want {
			t.Errorf("request %d: %q", i, why)
		}
	}
	reject := newBench(t, 2, 0, 0, 0)
	for i, want := range []refusal{admitted, admitted, concurrencyLimit} {
		if _, why := reject.enter(7, 1); why != want {
			t.Errorf("request %d where nobody waits: %q", i, why)
		}
	}
	// As kube-apiserver v1.37.0 was seen to behave with no seats at all.
	none := newBench(t, 0, 0, 0, 0)
	for i, want := range []refusal{admitted, concurrencyLimit} {
		if _, why := none.enter(7, 1); why != want {
			t.Errorf("request %d where nothing is: %q", i, why)
		}
	}
	if w, _ := newBench(t, 0, 1, 1, 1).enter(7, 1); w == nil {
		t.Error("a queue without seats lets requests run")
	}
}

// TestDeal: the cards of a hand differ, are the same each time, and all cards
// are dealt about equally often.
func TestDeal(t *testing.T) {
	const deck, size, hands = 16, 4, 20000
	random := rand.New(rand.NewPCG(1, 2))
	var dealt [deck]int
	for range hands {
		hash := random.Uint64()
		h := deal(hash, deck, size)
		if h != deal(hash, deck, size) || h.size != size {
			t.Fatal("a hand is not always the same")
		}
		for i, card := range h.cards[:h.size] {
			if card < 0 || card >= deck || i > 0 && card <= h.cards[i-1] {
				t.Fatalf("%v", h)
			}
			dealt[card]++
		}
	}
	for card, n := range dealt {
		if mean := hands * size / deck; n < mean*9/10 || n > mean*11/10 {
			t.Errorf("card %d was dealt %d times, all: %v", card, n, dealt)
		}
	}
	if h := deal(12345, maxHand, maxHand); h.size != maxHand || h.cards[maxHand-1] != maxHand-1 {
		t.Errorf("all cards: %v", h)
	}
}
