package keylock

import (
	"context"
	"errors"
	"testing"
)

// A caller that stops waiting for a key does not block the others.
func TestTurns(t *testing.T) {
	var locks Locks[string]
	give, err := locks.Lock(t.Context(), "pv")
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := locks.Lock(ended, "pv"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second turn at once: %v", err)
	}
	third := make(chan func())
	go func() {
		give, err := locks.Lock(t.Context(), "pv")
		if err != nil {
			t.Error(err)
		}
		third <- give
	}()
	give()
	(<-third)()
	if locks.Len() > 0 {
		t.Errorf("%v is kept", locks.locked)
	}
}
