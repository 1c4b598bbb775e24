package logs

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/eventually"
)

// openForWriting is a log that the runtime still has open.
func openForWriting(t *testing.T) (path string, runtime *os.File) {
	t.Helper()
	path = logFile(t, "2026-11-21T09:00:00Z stdout F first\n")
	runtime, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runtime.Close() })
	return path, runtime
}

// reading reads the log of a container that runs or has ended.
func reading(t *testing.T, path string, clock *clocktesting.FakeClock, runs bool) <-chan string {
	t.Helper()
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() {
		defer log.Close()
		var out bytes.Buffer
		o := Options{Clock: clock, TailLines: new(int64(1)), Running: func(context.Context) (bool, error) { return runs, nil }}
		if err := log.Read(context.Background(), &out, o); err != nil {
			out.WriteString(err.Error())
		}
		done <- out.String()
	}()
	return done
}

func TestLastLineOfAnEndedContainerIsWaitedFor(t *testing.T) {
	path, runtime := openForWriting(t)
	clock := clocktesting.NewFakeClock(time.Now())
	done := reading(t, path, clock, false)
	eventually.Holds(t, "the reader waits for the clock", clock.HasWaiters)
	if _, err := runtime.WriteString("2026-11-21T09:00:01Z stdout F last\n"); err != nil {
		t.Fatal(err)
	}
	runtime.Close()
	clock.Step(completeLook)
	if got := <-done; got != "last\n" {
		t.Errorf("the end is %q", got)
	}
}

func TestWriterThatStaysIsNotWaitedFor(t *testing.T) {
	path, _ := openForWriting(t)
	clock := clocktesting.NewFakeClock(time.Now())
	done := reading(t, path, clock, false)
	eventually.Holds(t, "the reader waits for the clock", clock.HasWaiters)
	clock.Step(completeWithin)
	if got := <-done; got != "first\n" {
		t.Errorf("the end is %q", got)
	}
}

func TestLogOfARunningContainerIsTakenAsItIs(t *testing.T) {
	path, _ := openForWriting(t)
	if got := <-reading(t, path, clocktesting.NewFakeClock(time.Now()), true); got != "first\n" {
		t.Errorf("the end is %q", got)
	}
}

func TestWhoWantsOnlyTheFirstBytesWaitsForNobody(t *testing.T) {
	path, _ := openForWriting(t)
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // with the fake clock, a wait would never end
	defer cancel()
	var out bytes.Buffer
	runs := func(context.Context) (bool, error) { return true, nil }
	err = log.Read(ctx, &out, Options{Clock: clocktesting.NewFakeClock(time.Now()), LimitBytes: new(int64(3)), Running: runs})
	if err != nil || out.String() != "fir" {
		t.Errorf("%q, %v", &out, err)
	}
}

// lookClock reports who looks for the end of a log. A follower that waits for more is another.
type lookClock struct {
	clock.RealClock
	looks chan struct{}
}

func (c lookClock) NewTimer(d time.Duration) clock.Timer {
	if d == completeLook {
		select {
		case c.looks <- struct{}{}:
		default:
		}
	}
	return c.RealClock.NewTimer(d)
}

// A runtime opens the new file of a rotated log before it closes the old one;
// what it still writes to the old one comes first.
func TestFollowWaitsForTheEndOfWhatWasMoved(t *testing.T) {
	path, runtime := openForWriting(t)
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	reader, writer := io.Pipe()
	var ended atomic.Bool
	clock := lookClock{looks: make(chan struct{}, 1)}
	go func() {
		writer.CloseWithError(log.Read(t.Context(), writer, Options{
			Follow: true, Watches: new(Watches), Clock: clock, Running: func(context.Context) (bool, error) { return !ended.Load(), nil },
		}))
	}()
	lines := make(chan string, 3)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(reader); s.Scan(); {
			lines <- s.Text()
		}
	}()
	if got := <-lines; got != "first" {
		t.Fatalf("the first line is %q", got)
	}
	next := path + ".next"
	for _, err := range []error{
		os.WriteFile(next, []byte("2026-11-21T09:00:02Z stdout F third\n"), 0o600), os.Rename(path, path+".20261121-090001"), os.Rename(next, path),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-clock.looks:
	case got := <-lines:
		t.Errorf("%q came while the file before was being written", got)
	}
	if _, err := runtime.WriteString("2026-11-21T09:00:01Z stdout F second\n"); err != nil {
		t.Fatal(err)
	}
	runtime.Close()
	ended.Store(true)
	for _, want := range []string{"second", "third"} {
		if got := <-lines; got != want {
			t.Errorf("line %q, want %q", got, want)
		}
	}
}
