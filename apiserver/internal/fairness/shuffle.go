package fairness

// maxHand is the largest hand that validation allows and 60 bits suffice for:
// 19 of 19 queues.
const maxHand = 19

// hand is a set of a level's queues.
type hand struct {
	cards [maxHand]int
	size  int
}

// deal deals size of deck cards, which the hash determines: a flow has the same
// hand each time, and two flows seldom have all of it in common (shuffle
// sharding). size is at most deck and maxHand.
func deal(hash uint64, deck, size int) hand {
	var h hand
	for h.size < size {
		left := uint64(deck - h.size)
		card := int(hash % left)
		hash /= left
		h.insert(card)
	}
	return h
}

// insert adds the card at a place among those not dealt yet. Cards are kept in
// order; each one at or before the place moves it up by one.
func (h *hand) insert(card int) {
	at := 0
	for at < h.size && h.cards[at] <= card {
		card++
		at++
	}
	copy(h.cards[at+1:h.size+1], h.cards[at:h.size])
	h.cards[at] = card
	h.size++
}
