package audit

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// fakeBackend records what is delivered, in batches.
type fakeBackend struct {
	fails    bool
	parallel int           // 0 for one
	hold     chan struct{} // if not nil, deliveries take until it is closed

	started atomic.Int32 // deliveries

	mu      sync.Mutex
	batches [][]*Event
	closed  bool
}

func (f *fakeBackend) Name() string { return "fake" }

func (f *fakeBackend) Parallel() int { return max(1, f.parallel) }

func (f *fakeBackend) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

func (f *fakeBackend) Deliver(ctx, _ context.Context, events []*Event) error {
	f.started.Add(1)
	if f.fails {
		return errors.New("broken")
	}
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batches = append(f.batches, events)
	return nil
}

// sizes are the sizes of the delivered batches.
func (f *fakeBackend) sizes() (sizes []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, batch := range f.batches {
		sizes = append(sizes, len(batch))
	}
	return sizes
}

func event(text string) *Event {
	return &Event{Level: RequestResponse, Stage: ResponseComplete, RequestURI: text, Verb: "get"}
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fakeBackend{}
		lost := NewErrors(prometheus.NewRegistry())
		sink := NewSink(backend, SinkOptions{Mode: ModeBatch, Batch: BatchOptions{
			BufferSize: 5, MaxSize: 3, MaxWait: time.Minute, ThrottleEnable: true, ThrottleQPS: 0.1, ThrottleBurst: 1,
		}}, lost, clock.RealClock{}, zap.NewNop())
		for range 7 {
			sink.Write(event("/"))
		}
		if n := testutil.ToFloat64(lost.WithLabelValues("fake")); n != 2 {
			t.Errorf("%v events lost, want 2: the buffer holds 5", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- sink.Run(ctx) }()
		synctest.Wait()
		if sizes := backend.sizes(); !slices.Equal(sizes, []int{3}) {
			t.Fatalf("a full batch was not written at once: %v", sizes)
		}
		time.Sleep(time.Minute) // the fake clock's
		synctest.Wait()
		if sizes := backend.sizes(); !slices.Equal(sizes, []int{3, 2}) {
			t.Fatalf("a batch that has waited long enough was not written: %v", sizes)
		}
		sink.Write(event("/last"))
		cancel()
		<-done
		if sizes := backend.sizes(); !slices.Equal(sizes, []int{3, 2, 1}) || !backend.closed {
			t.Errorf("the rest was not written: %v, closed %v", sizes, backend.closed)
		}
		if sink.Write(event("/late")) {
			t.Error("an event after the end was taken")
		}
	})
}

// TestASlowReceiverDelaysNoOtherBatch: it would fill the buffer. At the end, what is under way has time
// to arrive, but not all the time that there is.
func TestASlowReceiverDelaysNoOtherBatch(t *testing.T) {
	for name, test := range map[string]struct {
		answers bool // after the server's end
		lost    float64
	}{
		"that answers in the end": {true, 0},
		"that does not":           {false, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &fakeBackend{parallel: 3, hold: make(chan struct{})}
				lost := NewErrors(prometheus.NewRegistry())
				sink := NewSink(backend, SinkOptions{Mode: ModeBatch, Batch: BatchOptions{BufferSize: 10, MaxSize: 1}}, lost, clock.RealClock{},
					zap.NewNop())
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- sink.Run(ctx) }()
				for range 5 {
					sink.Write(event("/"))
				}
				synctest.Wait()
				if n := backend.started.Load(); n != 3 {
					t.Errorf("%d batches are under way, want 3", n)
				}
				cancel()
				time.Sleep(deliverTimeout / 2) // the fake clock's
				if test.answers {
					close(backend.hold)
				}
				<-done
				if n := testutil.ToFloat64(lost.WithLabelValues("fake")); n != test.lost || !backend.closed {
					t.Errorf("%v events were lost, want %v; closed %v", n, test.lost, backend.closed)
				}
			})
		})
	}
}

func TestStrictSinksSayWhenAnEventIsLost(t *testing.T) {
	lost := NewErrors(prometheus.NewRegistry())
	for mode, strict := range map[string]bool{ModeBlocking: false, ModeBlockingStrict: true} {
		sink := NewSink(&fakeBackend{fails: true}, SinkOptions{Mode: mode}, lost, clock.RealClock{}, zap.NewNop())
		if sink.Write(event("/")) || sink.Strict() != strict {
			t.Errorf("%s: strict %v", mode, sink.Strict())
		}
	}
	if n := testutil.ToFloat64(lost.WithLabelValues("fake")); n != 2 {
		t.Errorf("%v lost", n)
	}
}

func TestTruncation(t *testing.T) {
	o := TruncateOptions{Enabled: true, MaxEventSize: 400, MaxBatchSize: 600}
	large := event("/large")
	large.RequestObject = json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	hopeless := event(strings.Repeat("/", 1000))
	var dropped []*Event
	batches := o.split([]*Event{event("/1"), large, hopeless, event("/2"), event("/3")}, func(e *Event) { dropped = append(dropped, e) })
	if len(dropped) != 1 || dropped[0].RequestURI != hopeless.RequestURI {
		t.Errorf("dropped %d", len(dropped))
	}
	total := 0
	for _, batch := range batches {
		total += len(batch)
	}
	if total != 4 || len(batches) < 2 {
		t.Errorf("%d events in %d batches", total, len(batches))
	}
	if cut := batches[0][1]; cut.RequestObject != nil || cut.Annotations[truncatedKey] != "true" {
		t.Errorf("%+v", cut)
	}
	if large.RequestObject == nil {
		t.Error("an event that others share was changed")
	}
}

func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "audit.log")
	log, err := NewLog(LogOptions{Path: path, Format: FormatLegacy})
	if err != nil {
		t.Fatal(err)
	}
	e := event("/api/v1/namespaces/a/pods")
	e.User.Username, e.User.Groups = "jane", []string{"dev", "ops"}
	e.ObjectRef = &ObjectReference{Namespace: "a"}
	e.ResponseStatus = &metav1.Status{Code: 200}
	if err := errors.Join(log.Deliver(t.Context(), t.Context(), []*Event{e}), log.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	want := `AUDIT: id="" stage="ResponseComplete" ip="<unknown>" method="get" user="jane" groups="\"dev\",\"ops\"" as="<self>" asgroups="<lookup>" user-agent="" namespace="a" uri="/api/v1/namespaces/a/pods" response="200"`
	if err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v %s", err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v: others can read it", info.Mode(), err)
	}
	if _, err := NewLog(LogOptions{Path: "/proc/no/such"}); err == nil {
		t.Error("a file that can't be written was taken")
	}
}

// What is logged after a line that was written in part only, by a server that was killed or on
// a full disk, is a line of its own: an event that counts as logged can be read.
func TestLogAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	killed := `{"kind":"Event","auditID":"kil`
	if err := os.WriteFile(path, []byte(killed), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := NewLog(LogOptions{Path: path, Format: FormatJSON})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Deliver(t.Context(), t.Context(), []*Event{{AuditID: "one"}, {AuditID: "two"}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	withFilesOfAtMost(t, uint64(info.Size())+20, func() { // as on a disk that is full then
		if err := log.Deliver(t.Context(), t.Context(), []*Event{{AuditID: "lost"}}); err == nil {
			t.Error("an event on a full disk is said to be written")
		}
		if err := log.Deliver(t.Context(), t.Context(), []*Event{{AuditID: "lost"}}); err == nil {
			t.Error("an event on a full disk is said to be written")
		}
	})
	if err := errors.Join(log.Deliver(t.Context(), t.Context(), []*Event{{AuditID: "three"}}), log.Deliver(t.Context(), t.Context(), []*Event{{AuditID: "four"}})); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			got = append(got, "torn")
			continue
		}
		got = append(got, string(e.AuditID))
	}
	if want := []string{"torn", "one", "two", "torn", "three", "four"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q:\n%s", got, want, text)
	}
}

// withFilesOfAtMost calls do while this process can make no file longer than that.
func withFilesOfAtMost(t *testing.T, size uint64, do func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}
