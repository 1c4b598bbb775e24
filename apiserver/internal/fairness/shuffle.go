package fairness

// maxHand is the largest hand that the 60 bits suffice for which validation
// allows: 19 of 19 queues.
const maxHand = 19

// hand is some of a level's queues, each there once.
type hand struct {
	cards [maxHand]int
	size  int
}

// deal deals size of deck cards by the hash, which decides all of them: a flow
// has the same hand each time, and two flows seldom have all of it in common
// (shuffle sharding). size is no more than deck and maxHand.
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

// insert adds the card that is at a place among those not dealt yet. Cards are
// kept in order, so that each one before it moves the place up by one.
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
