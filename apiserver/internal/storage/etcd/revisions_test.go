package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"kctl/apiserver/internal/storage"
)

// TestRevisionWaitsAsLongAsItsCaller: an etcd that is away for a while, as for an election, costs
// a reader time and not its answer; who does not say how long it waits gets the error at once.
func TestRevisionWaitsAsLongAsItsCaller(t *testing.T) {
	asked := 0
	s := &Store{revisions: &revisions{ask: func(context.Context) (int64, error) {
		if asked++; asked%3 != 0 {
			return 0, context.DeadlineExceeded
		}
		return int64(asked), nil
	}}}
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, err := s.Revision(patient); err != nil || got != 3 {
		t.Errorf("with time left: %d, %v", got, err)
	}
	if _, err := s.Revision(t.Context()); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("without a time: %v", err)
	}
	late, end := context.WithTimeout(t.Context(), 0)
	defer end()
	if _, err := s.Revision(late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after its time: %v", err)
	}
}
