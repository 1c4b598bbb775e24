package handlers

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"kctl/apiserver/internal/registry"
)

// bounded records the limit set for its client.
type bounded struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (b *bounded) SetWriteDeadline(t time.Time) error {
	b.until = t
	return nil
}

// TestAWatchHurriesUntilItHasBegun: a client that does not read the initial
// events must not hold its seat for ever; after them it may read as slowly as
// it likes.
func TestAWatchHurriesUntilItHasBegun(t *testing.T) {
	w := &bounded{ResponseRecorder: httptest.NewRecorder()}
	context, _ := gin.CreateTestContext(w)
	s := &stream{call: &call{gin: context}}
	left := false
	begun := s.initialEventsDone(func() { left = true })
	err := s.follow(func(yield func(registry.WatchEvent, bool) bool) {
		event := registry.WatchEvent{Frame: []byte("{}\n")}
		yield(event, false)
		if w.until.IsZero() || left {
			t.Error("the client may take for ever for what was there at first")
		}
		begun()
		if !w.until.IsZero() || !left {
			t.Errorf("it has begun, and is bound until %s (seat left: %t)", w.until, left)
		}
		yield(event, false)
		if !w.until.IsZero() {
			t.Error("a later event is hurried")
		}
	}, plainStream{context.Writer})
	if err != nil {
		t.Error(err)
	}
}
