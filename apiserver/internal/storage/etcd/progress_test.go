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
		"3.3.27": false, "3.4.23": false, "3.4.25": false, "3.4.30": false, "3.4.31": true, "3.5.8": false, "3.5.12": false, "3.5.13": true, "3.5.21": true,
		"3.6.0": true, "3.7.3": true, "3.6.0-rc.1": true, "4.0.0": true, "": false, "new": false,
	} {
		if got := progressRight(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// An etcd whose progress notifications are not trusted represents an old one.
func TestProgressOfAnOldEtcd(t *testing.T) {
	embedded, err := StartEmbedded(t.Context(), t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := embedded.Stop(); err != nil {
			t.Error(err)
		}
	}()
	s := NewStore(Options{Client: embedded.Client(), Direct: embedded.Direct(), CurrentRevision: embedded.Revision, Clock: clock.RealClock{}})
	s.progress = &progressSupport{old: true}
	ctx := t.Context()
	put := func(key string) storage.Object {
		t.Helper()
		o, err := s.Create(ctx, key, []byte(`{"metadata":{}}`), 0)
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
	var want []storage.Event
	for i := range 50 {
		made := put(fmt.Sprintf("/r/%d", i))
		gone, err := s.Delete(ctx, made.Key, made.Revision)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, storage.Event{Type: storage.Added, Object: made}, storage.Event{Type: storage.Deleted, Object: gone},
			progressTo(put(fmt.Sprintf("/elsewhere/%d", i)).Revision))
	}
	// One progress notification may cover several foreign changes: the last
	// revision counts.
	last := first.Revision
	for at := 0; last < want[len(want)-1].Object.Revision; {
		for _, e := range <-w.Events() {
			last = e.Object.Revision
			for want[at].Type == storage.Progress && want[at].Object.Revision < last {
				at++
			}
			if want[at].Type != e.Type || want[at].Object.Key != e.Object.Key || want[at].Object.Revision != last {
				t.Fatalf("got %+v, want %+v", e, want[at])
			}
			at++
		}
	}
}
