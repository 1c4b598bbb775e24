package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

func object(name string) []byte {
	return fmt.Appendf(nil, `{"kind":"ConfigMap","metadata":{"name":%q}}`, name)
}

func TestCreateOnlyOnce(t *testing.T) {
	s := etcdtest.Start(t)
	ctx := t.Context()
	created, err := s.Create(ctx, "/r/a", object("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"resourceVersion":"%d","name":"a"}}`, created.Revision)
	if string(created.Value) != want {
		t.Errorf("created %s, want %s", created.Value, want)
	}
	if _, err := s.Create(ctx, "/r/a", object("a"), 0); !errors.Is(err, storage.ErrExists) {
		t.Errorf("second create: %v", err)
	}
	got, err := s.Get(ctx, "/r/a")
	if err != nil || string(got.Value) != want || got.Revision != created.Revision {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := s.Get(ctx, "/r/b"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("get of what is not there: %v", err)
	}
}

func TestUpdateAndDeleteAreGuarded(t *testing.T) {
	s := etcdtest.Start(t)
	ctx := t.Context()
	first, err := s.Create(ctx, "/r/a", object("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Update(ctx, "/r/a", first.Revision, object("a2"), 0)
	if err != nil || second.Revision <= first.Revision {
		t.Fatalf("update: %+v, %v", second, err)
	}
	current, err := s.Update(ctx, "/r/a", first.Revision, object("a3"), 0)
	if !errors.Is(err, storage.ErrConflict) || string(current.Value) != string(second.Value) {
		t.Errorf("stale update: %s, %v", current.Value, err)
	}
	current, err = s.Delete(ctx, "/r/a", first.Revision)
	if !errors.Is(err, storage.ErrConflict) || current.Revision != second.Revision {
		t.Errorf("stale delete: %+v, %v", current, err)
	}
	gone, err := s.Delete(ctx, "/r/a", second.Revision)
	if err != nil || gone.Revision <= second.Revision {
		t.Errorf("delete: %+v, %v", gone, err)
	}
	if _, err := s.Delete(ctx, "/r/a", second.Revision); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("second delete: %v", err)
	}
	if _, err := s.Update(ctx, "/r/a", second.Revision, object("a"), 0); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("update of what is gone: %v", err)
	}
}

func TestListIsOneRevision(t *testing.T) {
	s := etcdtest.Start(t)
	ctx := t.Context()
	for i := range 5 {
		if _, err := s.Create(ctx, fmt.Sprintf("/r/%d", i), object("x"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Create(ctx, "/rr/other", object("x"), 0); err != nil {
		t.Fatal(err)
	}
	page, at, remaining, err := s.List(ctx, "/r/", "", 2, 0)
	if err != nil || len(page) != 2 || remaining != 3 || page[1].Key != "/r/1" {
		t.Fatalf("first page: %v at %d, %d left, %v", page, at, remaining, err)
	}
	if _, err := s.Create(ctx, "/r/11", object("late"), 0); err != nil {
		t.Fatal(err)
	}
	rest, _, remaining, err := s.List(ctx, "/r/", page[1].Key, 0, at)
	if err != nil || len(rest) != 3 || remaining != 0 || rest[0].Key != "/r/2" {
		t.Errorf("rest at %d: %v, %d left, %v", at, rest, remaining, err)
	}
	if now, _, _, err := s.List(ctx, "/r/", "", 0, 0); err != nil || len(now) != 6 {
		t.Errorf("now: %d objects, %v", len(now), err)
	}
	if _, _, _, err := s.List(ctx, "/r/", "", 0, at+1000); !errors.Is(err, storage.ErrFuture) {
		t.Errorf("future revision: %v", err)
	}
}

func TestWatchInOrderAndFromARevision(t *testing.T) {
	s := etcdtest.Start(t)
	ctx := t.Context()
	a, err := s.Create(ctx, "/r/a", object("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	a2, err := s.Update(ctx, "/r/a", a.Revision, object("a2"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(ctx, "/r/a", a2.Revision); err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(ctx, "/r/", a.Revision-1)
	if err != nil {
		t.Fatal(err)
	}
	var got []storage.Event
	for len(got) < 3 {
		got = append(got, <-w.Events()...)
	}
	if got[0].Type != storage.Added || got[1].Type != storage.Modified || got[2].Type != storage.Deleted {
		t.Errorf("types: %v", got)
	}
	if string(got[1].Object.Value) != string(object("a2")) {
		t.Errorf("second event has %s", got[1].Object.Value)
	}
	other, err := s.Create(ctx, "/elsewhere", object("x"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.RequestProgress(ctx); err != nil {
		t.Fatal(err)
	}
	progress := (<-w.Events())[0]
	if progress.Type != storage.Progress || progress.Object.Revision < other.Revision {
		t.Errorf("progress: %+v, want at least revision %d", progress, other.Revision)
	}
}

func TestWatchFromACompactedRevision(t *testing.T) {
	s, embedded := etcdtest.StartIn(t, t.TempDir())
	ctx := t.Context()
	first, err := s.Create(ctx, "/r/a", object("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Update(ctx, "/r/a", first.Revision, object("b"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Client().Compact(ctx, second.Revision); err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(ctx, "/r/", first.Revision-1)
	if err != nil {
		t.Fatal(err)
	}
	for range w.Events() {
	}
	if !errors.Is(w.Err(), storage.ErrCompacted) {
		t.Errorf("watch ended with %v", w.Err())
	}
	if _, _, _, err := s.List(ctx, "/r/", "", 0, first.Revision); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("list ended with %v", err)
	}
}

func TestReadsWhatUpstreamStored(t *testing.T) {
	s, embedded := etcdtest.StartIn(t, t.TempDir())
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       corev1.PodSpec{NodeName: "n1"},
	}
	value, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), pod)
	if err != nil {
		t.Fatal(err)
	}
	put, err := embedded.Client().Put(t.Context(), "/registry/pods/default/web", string(value))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), "/registry/pods/default/web")
	if err != nil {
		t.Fatal(err)
	}
	read := &corev1.Pod{}
	upstream := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	if err := runtime.DecodeInto(upstream, got.Value, read); err != nil {
		t.Fatal(err)
	}
	if read.Spec.NodeName != "n1" || read.Kind != "Pod" || read.APIVersion != "v1" || read.ResourceVersion != fmt.Sprint(put.Header.Revision) {
		t.Errorf("read %s", got.Value)
	}
}

func TestLeasesAreShared(t *testing.T) {
	s, embedded := etcdtest.StartIn(t, t.TempDir())
	for i := range 10 {
		if _, err := s.Create(t.Context(), fmt.Sprintf("/r/%d", i), object("x"), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Create(t.Context(), "/r/other", object("x"), time.Minute); err != nil {
		t.Fatal(err)
	}
	held, err := embedded.Client().Leases(t.Context())
	if err != nil || len(held.Leases) != 2 {
		t.Errorf("%d leases, %v; want one for each time to live", len(held.Leases), err)
	}
	kv, err := embedded.Client().Get(t.Context(), "/r/3")
	if err != nil || kv.Kvs[0].Lease == int64(clientv3.NoLease) {
		t.Errorf("key without a lease: %v, %v", kv, err)
	}
}

func TestRevisionCoversEveryWriteBefore(t *testing.T) {
	_, embedded := etcdtest.StartIn(t, t.TempDir())
	for name, current := range map[string]func() (int64, error){"asked": nil, "in process": embedded.Revision} {
		t.Run(name, func(t *testing.T) {
			s := etcd.NewStore(etcd.Options{Client: embedded.Client(), Direct: embedded.Direct(), CurrentRevision: current, Clock: clock.RealClock{}})
			var wg sync.WaitGroup
			for worker := range 8 {
				wg.Go(func() {
					for i := range 20 {
						written, err := s.Create(t.Context(), fmt.Sprintf("/%s/%d-%d", name, worker, i), object("x"), 0)
						if err != nil {
							t.Error(err)
							return
						}
						now, err := s.Revision(t.Context())
						if err != nil || now < written.Revision {
							t.Errorf("revision %d, %v after a write at %d", now, err, written.Revision)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestCompactionKeepsOneInterval(t *testing.T) {
	s, embedded := etcdtest.StartIn(t, t.TempDir())
	ctx := t.Context()
	old, err := s.Create(ctx, "/r/a", object("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := &etcd.Compactor{Client: embedded.Client(), Logger: zap.NewNop()}
	theirs := &etcd.Compactor{Client: embedded.Client(), Logger: zap.NewNop()}
	if at, err := ours.Compact(ctx); at != 0 || err != nil {
		t.Errorf("first interval compacted to %d, %v", at, err)
	}
	if at, err := theirs.Compact(ctx); at != 0 || err != nil {
		t.Errorf("another server in the same interval: %d, %v", at, err)
	}
	if _, err := s.Update(ctx, "/r/a", old.Revision, object("b"), 0); err != nil {
		t.Fatal(err)
	}
	at, err := ours.Compact(ctx)
	if err != nil || at < old.Revision {
		t.Errorf("second interval compacted to %d, %v", at, err)
	}
	if at, err := theirs.Compact(ctx); at != 0 || err != nil {
		t.Errorf("both servers compacted: %d, %v", at, err)
	}
	if _, _, _, err := s.List(ctx, "/r/", "", 0, old.Revision-1); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("old revision is still there: %v", err)
	}
}

func TestEmbeddedKeepsItsData(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		embedded, err := etcd.StartEmbedded(t.Context(), dir, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		s := etcd.NewStore(etcd.Options{Client: embedded.Client(), Direct: embedded.Direct(), CurrentRevision: embedded.Revision, Clock: clock.RealClock{}})
		if _, err := s.Create(t.Context(), fmt.Sprintf("/r/%d", i), object("x"), 0); err != nil {
			t.Fatal(err)
		}
		got, _, _, err := s.List(t.Context(), "/r/", "", 0, 0)
		if err != nil || len(got) != i+1 {
			t.Errorf("start %d: %d objects, %v", i, len(got), err)
		}
		if err := embedded.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// It is also quiet with more than 5,000 entries, up to which etcd's applied
// state may lag: at each start, etcd believes that it is that far behind.
func TestEmbeddedIsQuietWhereAllIsWell(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	dir := filepath.Join(t.TempDir(), "etcd")
	for _, writes := range []int{5100, 0, 0, 0} {
		embedded, err := etcd.StartEmbedded(t.Context(), dir, zap.New(core))
		if err != nil {
			t.Fatal(err)
		}
		var group errgroup.Group
		group.SetLimit(64)
		for range writes {
			group.Go(func() error {
				_, err := embedded.Client().Put(t.Context(), "key", "value")
				return err
			})
		}
		if err := errors.Join(group.Wait(), embedded.Stop()); err != nil {
			t.Fatal(err)
		}
	}
	told := map[string]int{}
	for _, line := range logs.All() {
		if !strings.Contains(line.Message, "took too long") { // where the machine is busy, all is not well
			told[fmt.Sprintf("%s: %s", line.Level, line.Message)]++
		}
	}
	if len(told) > 0 {
		t.Errorf("it says %v", told)
	}
}

// If etcd does not answer a call, the caller gets the error, and nothing is
// logged.
func TestClientIsQuietAboutItsAttempts(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://127.0.0.1:1"}, Logger: etcd.ClientLogger(zap.New(core))})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(10*time.Millisecond))
	defer cancel()
	if _, err := client.Get(ctx, "key"); err == nil {
		t.Error("there is an answer without an etcd")
	}
	for _, line := range logs.All() {
		t.Errorf("%s: %s", line.Level, line.Message)
	}
}
