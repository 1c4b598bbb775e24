package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/utils/clock"

	"kctl/proto/eventually"
)

// A follower gets every line, once and in order, while the log is written and
// rotated again and again, and returns when the container has ended.
func TestFollowThroughRotations(t *testing.T) {
	const count = 3000
	path := logFile(t, "")
	// Before the first rotation, because earlier rotated files are not part of
	// this log.
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	var ended atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		defer ended.Store(true)
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range count {
			// In two writes, so that readers see incomplete lines.
			_, err1 := fmt.Fprintf(file, "2026-11-21T09:00:00Z stdout P %d", i)
			_, err2 := fmt.Fprintf(file, " \n2026-11-21T09:00:00Z stdout F .\n")
			if err := errors.Join(err1, err2); err != nil {
				t.Error(err)
				return
			}
			if i%500 == 499 {
				moved := fmt.Sprintf("%s.%d", path, i)
				if err := os.Rename(path, moved); err != nil {
					t.Error(err)
					return
				}
				next, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
				if err != nil {
					t.Error(err)
					return
				}
				_ = file.Close()
				// The reader must see each file: a kubelet never rotates twice between two
				// looks.
				eventually.Holds(t, "the next file is read", func() bool { return opened(next.Name()) })
				file = next
			}
		}
		_ = file.Close()
	})
	var out bytes.Buffer
	err = log.Read(t.Context(), &out, Options{
		Follow:  true,
		Watches: new(Watches),
		Clock:   clock.RealClock{},
		Running: func(context.Context) (bool, error) { return !ended.Load(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	writer.Wait()
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	want := make([]string, count)
	for i := range want {
		want[i] = fmt.Sprintf("%d .", i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d; the first that differs is %s", len(got), count, firstDifference(got, want))
	}
}

// A reader that reads nothing while its log is rotated and old files are
// removed still gets everything in the end.
func TestASlowFollowerMissesNothing(t *testing.T) {
	if got, want := followSlowly(t, 4, Options{}), "0\n1\n2\n3\n4\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What can no longer be kept for a reader is reported.
func TestAFollowerThatIsTooSlowIsToldOfIt(t *testing.T) {
	if got, want := followSlowly(t, heldFiles+2, Options{}),
		"0\n[kubelet: 2 file(s) of this log were rotated away before they were read]\n3\n4\n5\n6\n7\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	const line = "2026-11-21T09:00:00.000000000Z "
	got := followSlowly(t, heldFiles+1, Options{Timestamps: true})
	for i, l := range strings.Split(got, "\n") {
		if at, text, _ := strings.Cut(l, " "); i == 1 && (!strings.HasPrefix(text, "[kubelet: 1 file") || len(at)+1 != len(line)) ||
			i != 1 && l != "" && !strings.HasPrefix(l, line) {
			t.Errorf("with times: %q", l)
		}
	}
}

// followSlowly returns what a follower reads that pauses while the log is
// rotated.
func followSlowly(t *testing.T, rotations int, o Options) string {
	t.Helper()
	path := logFile(t, "2026-11-21T09:00:00Z stdout F 0\n")
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	reader, writer := io.Pipe()
	var ended atomic.Bool
	done := make(chan error, 1)
	go func() {
		o.Follow, o.Watches, o.Clock = true, new(Watches), clock.RealClock{}
		o.Running = func(context.Context) (bool, error) { return !ended.Load(), nil }
		err := log.Read(t.Context(), writer, o)
		done <- errors.Join(err, writer.Close())
	}()
	first := make([]byte, 1)
	if _, err := io.ReadFull(reader, first); err != nil { // it follows, and waits for us to read
		t.Fatal(err)
	}
	for i := 1; i <= rotations; i++ {
		aside := fmt.Sprintf("%s.%d", path, i)
		if err := os.Rename(path, aside); err != nil {
			t.Fatal(err)
		}
		next, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(next, "2026-11-21T09:00:00Z stdout F %d\n", i)
		eventually.Holds(t, "the file is read", func() bool { return opened(path) })
		if err := errors.Join(err, next.Close(), os.Remove(aside)); err != nil {
			t.Fatal(err)
		}
	}
	ended.Store(true)
	rest, err := io.ReadAll(reader)
	if err := errors.Join(err, <-done); err != nil {
		t.Error(err)
	}
	return string(first) + string(rest)
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%d: %q, want %q", i, got[i], want[i])
		}
	}
	return "after the shorter's end"
}

// opened says whether this process has at least two descriptors for the file:
// the writer's and the reader's.
func opened(path string) bool {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return false
	}
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && target == path {
			n++
		}
	}
	return n >= 2
}

// A container's last line may reach the file after the follower has looked, and
// before it learns that the container has ended.
func TestFollowHasTheLastWord(t *testing.T) {
	path := logFile(t, sample)
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out bytes.Buffer
	err = log.Read(t.Context(), &out, Options{
		Follow: true, Watches: new(Watches), Clock: clock.RealClock{}, TailLines: new(int64(0)),
		Running: func(context.Context) (bool, error) {
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return false, err
			}
			defer file.Close()
			_, err = io.WriteString(file, "2026-11-21T09:01:00Z stdout F the last word\n")
			return false, err
		},
	})
	if err != nil || out.String() != "the last word\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	log, err := Open(logFile(t, sample))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err = log.Read(ctx, io.Discard, Options{
		Follow:  true,
		Watches: new(Watches),
		Clock:   clock.RealClock{},
		Flush:   cancel,
		Running: func(context.Context) (bool, error) { return true, nil },
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestFollowStopsWhenNobodyListens(t *testing.T) {
	log, err := Open(logFile(t, sample))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	reader, writer := io.Pipe()
	_ = reader.Close()
	err = log.Read(t.Context(), writer, Options{
		Follow:  true,
		Watches: new(Watches),
		Clock:   clock.RealClock{},
		Running: func(context.Context) (bool, error) { return true, nil },
	})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

// The kernel gives root few inotify instances, and all of the node's programs need them.
func TestFollowersShareAnInotifyInstance(t *testing.T) {
	before := inotifyInstances(t)
	ctx, cancel := context.WithCancel(t.Context())
	var watches Watches
	var followers, caughtUp sync.WaitGroup
	for range 20 {
		log, err := Open(logFile(t, sample))
		if err != nil {
			t.Fatal(err)
		}
		caughtUp.Add(1)
		followers.Go(func() {
			defer log.Close()
			var once sync.Once
			_ = log.Read(ctx, io.Discard, Options{ // ends with ctx's error
				Follow: true, Watches: &watches, Clock: clock.RealClock{}, Flush: func() { once.Do(caughtUp.Done) },
				Running: func(context.Context) (bool, error) { return true, nil },
			})
		})
	}
	caughtUp.Wait()
	if n := inotifyInstances(t) - before; n != 1 {
		t.Errorf("20 followers have %d inotify instances", n)
	}
	cancel()
	followers.Wait()
	eventually.Holds(t, "nothing is watched any more", func() bool { return inotifyInstances(t) == before })
}

func inotifyInstances(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); to == "anon_inode:inotify" {
			n++
		}
	}
	return n
}
