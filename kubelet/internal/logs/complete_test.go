package logs

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// openForWriting is a log that the runtime has not let go of.
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

// reading reads the log of a container that has ended, or runs.
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
		o := Options{Clock: clock, TailLines: number(1), Running: func(context.Context) (bool, error) { return runs, nil }}
		if err := log.Read(context.Background(), &out, o); err != nil {
			out.WriteString(err.Error())
		}
		done <- out.String()
	}()
	return done
}

// awaitWaiter returns when the reader waits by the clock.
func awaitWaiter(clock *clocktesting.FakeClock) {
	for !clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
}

func TestLastLineOfAnEndedContainerIsWaitedFor(t *testing.T) {
	path, runtime := openForWriting(t)
	clock := clocktesting.NewFakeClock(time.Now())
	done := reading(t, path, clock, false)
	awaitWaiter(clock)
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
	awaitWaiter(clock)
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
