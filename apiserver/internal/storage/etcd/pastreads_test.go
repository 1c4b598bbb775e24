package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/storage"
)

// pastReading is a reader of the past in a test, which has ended if its context has.
type pastReading struct {
	*pastRead
	ctx context.Context
}

func readPast(t *testing.T, p *pastReads) (pastReading, error) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := p.acquire(ctx, cancel)
	return pastReading{r, ctx}, err
}

// Whoever takes little of its clients' time keeps its place, however long etcd takes.
func TestSlowReadersOfThePastGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPastReads(clock.RealClock{})
		var readers []pastReading
		for range maxPastReads {
			r, err := readPast(t, p)
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, r)
		}
		slow, slower := readers[1], readers[2]
		slow.toClient()
		slower.toClient()
		time.Sleep(pastReadPatience / 2)
		slow.toEtcd()
		time.Sleep(pastReadPatience)
		began := time.Now()
		if _, err := readPast(t, p); err != nil || time.Since(began) != 0 || slower.ctx.Err() == nil {
			t.Errorf("%v after %v, the slower one's context has %v", err, time.Since(began), slower.ctx.Err())
		}
		if _, err := readPast(t, p); !errors.Is(err, storage.ErrUnavailable) || time.Since(began) != pastReadWait {
			t.Errorf("nobody is slow: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		slow.toClient()
		if _, err := readPast(t, p); err != nil || time.Since(began) != pastReadPatience/2 || slow.ctx.Err() == nil {
			t.Errorf("%v after %v, the slow one's context has %v", err, time.Since(began), slow.ctx.Err())
		}
		readers[0].end()
		if _, err := readPast(t, p); err != nil || readers[3].ctx.Err() != nil {
			t.Errorf("a place was free: %v, %v", err, readers[3].ctx.Err())
		}
	})
}

// One who has got a place meanwhile, or has gone, needs no room.
func TestNobodyGivesWayToOneWhoNoLongerWaits(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	p := newPastReads(clock)
	r, err := readPast(t, p)
	if err != nil {
		t.Fatal(err)
	}
	r.toClient()
	clock.Step(pastReadPatience)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if p.makeRoom(gone); r.ctx.Err() != nil {
		t.Fatal("a reader was ended for nobody")
	}
	if p.makeRoom(t.Context()); r.ctx.Err() == nil {
		t.Error("the reader did not give way to one who waits")
	}
}

// A client that takes nothing of the past that has been read for it is such a reader.
func TestNobodyTakesThePast(t *testing.T) {
	embedded, err := StartEmbedded(t.Context(), t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := embedded.Stop(); err != nil {
			t.Error(err)
		}
	})
	clock := clocktesting.NewFakeClock(time.Now())
	s := NewStore(Options{Client: embedded.Client(), Direct: embedded.Direct(), CurrentRevision: embedded.Revision, Clock: clock})
	made, err := s.Create(t.Context(), "/r/a", []byte(`{"metadata":{}}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * maxPastReads {
		if _, err := s.Changes(t.Context(), "/r/", made.Revision-1, made.Revision); err != nil {
			t.Fatal(err)
		}
		clock.Step(pastReadPatience)
	}
}
