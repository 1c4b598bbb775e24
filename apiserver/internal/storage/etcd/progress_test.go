package etcd

import (
	"fmt"
	"testing"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
)

func TestWhoTellsProgressRightly(t *testing.T) {
	for version, want := range map[string]bool{
		"3.3.27": false, "3.4.23": false, "3.4.25": true, "3.5.7": false, "3.5.8": true, "3.5.21": true,
		"3.6.0": true, "3.7.3": true, "3.6.0-rc.1": true, "4.0.0": true, "": false, "new": false,
	} {
		if got := progressRight(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// An old etcd is any etcd whose word is not taken.
func TestProgressFoundByOneself(t *testing.T) {
	embedded, err := StartEmbedded(t.Context(), t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := embedded.Stop(); err != nil {
			t.Error(err)
		}
	}()
	s := NewStore(Options{Client: embedded.Client(), CurrentRevision: embedded.Revision, Clock: clock.RealClock{}, Logger: zap.NewNop()})
	s.progress = &progressSupport{old: true}
	ctx := t.Context()
	value := []byte(`{"metadata":{}}`)
	put := func(key string) storage.Object {
		t.Helper()
		o, err := s.Create(ctx, key, value, 0)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := put("/r/a")
	w, err := s.Watch(ctx, "/r/", first.Revision)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := put("/other")
	next := func() storage.Event {
		t.Helper()
		events := <-w.Events()
		if len(events) != 1 {
			t.Fatalf("%d events at once", len(events))
		}
		return events[0]
	}
	if err := w.RequestProgress(ctx); err != nil {
		t.Fatal(err)
	}
	if e := next(); e.Type != storage.Progress || e.Object.Revision != elsewhere.Revision {
		t.Errorf("after a change elsewhere: %+v", e)
	}
	// Whether the events or the request are first, no progress comes between them.
	for i := range 50 {
		made := put(fmt.Sprintf("/r/%d", i))
		gone, err := s.Delete(ctx, made.Key, made.Revision)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RequestProgress(ctx); err != nil {
			t.Fatal(err)
		}
		seen := []int64{}
		for len(seen) < 2 {
			for _, e := range <-w.Events() {
				if e.Type == storage.Progress {
					if len(seen) == 0 {
						continue // what came and went changes nothing
					}
					t.Fatalf("progress %d after %v, before the events up to %d", e.Object.Revision, seen, gone.Revision)
				}
				seen = append(seen, e.Object.Revision)
			}
		}
		if seen[0] != made.Revision || seen[1] != gone.Revision {
			t.Errorf("events at %v", seen)
		}
		// A request that came between may have left its answer.
		if err := w.RequestProgress(ctx); err != nil {
			t.Fatal(err)
		}
		if e := next(); e.Type != storage.Progress || e.Object.Revision < gone.Revision {
			t.Errorf("progress: %+v", e)
		}
		for drained := false; !drained; {
			select {
			case <-w.Events():
			default:
				drained = true
			}
		}
	}
}
