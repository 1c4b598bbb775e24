package derived

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
)

// of is what callers do.
func (t *Texts[K]) of(ctx context.Context, stored []byte, into K, makes func() ([]byte, error)) ([]byte, error) {
	text, settle := t.Claim(stored, into)
	if settle != nil {
		settle(makes())
	}
	return text.Wait(ctx)
}

// TestBounded: those that were used last are kept.
func TestBounded(t *testing.T) {
	const size, kept = 1000, 10
	texts := New[string](kept * (size + PerText))
	made := map[int]int{}
	objects := make([][]byte, 3*kept)
	get := func(i int) {
		text, err := texts.of(t.Context(), objects[i], "", func() ([]byte, error) {
			made[i]++
			return bytes.Repeat([]byte{byte(i)}, size), nil
		})
		if err != nil || len(text) != size || text[0] != byte(i) {
			t.Fatalf("object %d: %v, %v", i, text, err)
		}
	}
	for i := range objects {
		objects[i] = fmt.Append(nil, i)
		get(i)
		get(0) // always among the last used
	}
	if n, size := texts.Held(); size > texts.most || n != kept || texts.order.Len() != kept {
		t.Errorf("%d bytes of %d texts are held", size, n)
	}
	get(len(objects) - 1)
	get(1)
	if made[0] != 1 || made[len(objects)-1] != 1 || made[1] != 2 {
		t.Errorf("made %v", made)
	}
}

// TestOneThatFails is tried again by the next one who asks, and takes no room.
func TestOneThatFails(t *testing.T) {
	texts, stored, broken := New[string](1<<20), []byte("a"), errors.New("broken")
	if _, err := texts.of(t.Context(), stored, "", func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if n, size := texts.Held(); n != 0 || size != 0 || texts.order.Len() != 0 {
		t.Errorf("%d are held, of %d bytes", n, size)
	}
	if text, err := texts.of(t.Context(), stored, "", func() ([]byte, error) { return []byte("x"), nil }); err != nil || string(text) != "x" {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestOneOutlivesItsRoom: one that was dropped while it was made is not counted.
func TestOneOutlivesItsRoom(t *testing.T) {
	texts := New[string](PerText + 1)
	text, err := texts.of(t.Context(), []byte("a"), "", func() ([]byte, error) {
		return []byte("a"), second(texts.of(t.Context(), []byte("b"), "", func() ([]byte, error) { return []byte("much"), nil }))
	})
	if n, size := texts.Held(); err != nil || string(text) != "a" || size != 0 || n != 0 {
		t.Errorf("got %s, %v; %d bytes are counted, %d are held", text, err, size, n)
	}
}

func second(_ []byte, err error) error { return err }

// TestWaitingEndsWithItsContext, whoever makes the text.
func TestWaitingEndsWithItsContext(t *testing.T) {
	texts, stored := New[string](1<<20), []byte("a")
	_, settle := texts.Claim(stored, "")
	text, other := texts.Claim(stored, "")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := text.Wait(ended); other != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v; claimed twice: %v", err, other != nil)
	}
	settle([]byte("x"), nil)
	if got, err := text.Wait(t.Context()); err != nil || string(got) != "x" {
		t.Errorf("got %s, %v", got, err)
	}
}
