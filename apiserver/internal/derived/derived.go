// Package derived holds what has been made of stored objects at some cost (their protobuf, their form in
// another version), so that it is made once, and not for each list that an object is in and each watcher
// that sees it change. Whoever makes such things has a Texts of its own. It knows nothing of what the texts mean.
package derived

import (
	"container/list"
	"context"
	"sync"
	"unsafe"
	"weak"
)

// PerText is what each text takes besides its bytes.
const PerText = 512

// Texts holds texts made of stored objects, each under the object's bytes and what it was made into. Those
// that were not used for longest go first. It is safe for concurrent use.
type Texts[K comparable] struct {
	most int

	mu    sync.Mutex
	held  map[key[K]]*list.Element // of *Text
	order *list.List               // the last used ones first
	size  int
}

// key identifies a stored object by its bytes, which are never changed. They can be freed; a weak
// pointer never equals one to others that come to lie in the same place.
type key[K comparable] struct {
	stored weak.Pointer[byte]
	into   K
}

// New returns a Texts that holds as many bytes.
func New[K comparable](most int) *Texts[K] {
	return &Texts[K]{most: most, held: map[key[K]]*list.Element{}, order: list.New()}
}

// Text is one, which may still be in the making.
type Text struct {
	made chan struct{}
	text []byte
	err  error
	// counted is its part of size; only with the lock of its Texts.
	counted int
	forget  func() // from held, with that lock
}

// Wait returns the text, which is shared and must not be changed, or why it could not be made.
func (t *Text) Wait(ctx context.Context) ([]byte, error) {
	select {
	case <-t.made:
		return t.text, t.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Settle is how the one who makes a text says what it is, or why there is none: then
// the next one who asks makes it.
type Settle func(text []byte, err error)

// Claim finds the text into which stored was made, as the last used one. If settle is not nil, nobody has
// made it yet: the caller has to, and to call settle, for which all others wait.
func (t *Texts[K]) Claim(stored []byte, into K) (text *Text, settle Settle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key[K]{weak.Make(unsafe.SliceData(stored)), into}
	if at := t.held[k]; at != nil {
		t.order.MoveToFront(at)
		return at.Value.(*Text), nil
	}
	text = &Text{made: make(chan struct{})}
	at := t.order.PushFront(text)
	t.held[k] = at
	text.forget = func() {
		t.order.Remove(at)
		delete(t.held, k)
		t.size -= text.counted
		text.forget = nil
	}
	return text, func(made []byte, err error) {
		text.text, text.err = made, err
		close(text.made)
		t.settle(text)
	}
}

// settle counts a text that has been made, or forgets one that could not be.
func (t *Texts[K]) settle(made *Text) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case made.forget == nil: // there was no room while it was made
		return
	case made.err != nil:
		made.forget()
		return
	}
	made.counted = len(made.text) + PerText
	t.size += made.counted
	for t.size > t.most {
		t.order.Back().Value.(*Text).forget()
	}
}

// Held is how many texts there are, and how many bytes they take.
func (t *Texts[K]) Held() (texts, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held), t.size
}
