package logs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
)

const sample = `2026-11-21T09:00:00.1Z stdout F one
2026-11-21T09:00:01.123456789Z stderr F two
2026-11-21T09:00:02Z stdout P thr
2026-11-21T09:00:02.5Z stderr F between
2026-11-21T09:00:03Z stdout F ee
not a log line
2026-11-21T09:00:04Z stdout F 
2026-11-21T09:00:05Z stdout F:tag last
`

func logFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string, o Options) string {
	t.Helper()
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o.Clock = clock.RealClock{}
	var out bytes.Buffer
	if err := log.Read(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestReadWhatIsWanted(t *testing.T) {
	path := logFile(t, sample)
	at := func(s string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct {
		name    string
		options Options
		want    string
	}{
		{"all", Options{}, "one\ntwo\nthrbetween\nee\n\nlast\n"},
		{"one stream", Options{Stream: "stdout"}, "one\nthree\n\nlast\n"},
		{"the other", Options{Stream: "stderr"}, "two\nbetween\n"},
		{"timestamps", Options{Stream: "stdout", Timestamps: true},
			"2026-11-21T09:00:00.100000000Z one\n2026-11-21T09:00:02.000000000Z three\n2026-11-21T09:00:04.000000000Z \n2026-11-21T09:00:05.000000000Z last\n"},
		{"since", Options{Since: at("2026-11-21T09:00:03Z")}, "ee\n\nlast\n"},
		{"since the future", Options{Since: at("2027-01-01T00:00:00Z")}, ""},
		{"limit", Options{LimitBytes: new(int64(6))}, "one\ntw"},
		{"limit at a line's end", Options{LimitBytes: new(int64(4))}, "one\n"},
		{"no bytes", Options{LimitBytes: new(int64(0))}, ""},
		{"two lines", Options{TailLines: new(int64(2))}, "\nlast\n"},
		{"no lines", Options{TailLines: new(int64(0))}, ""},
		{"more lines than there are", Options{TailLines: new(int64(100))}, "one\ntwo\nthrbetween\nee\n\nlast\n"},
		{"tail, then since", Options{TailLines: new(int64(2)), Since: at("2026-11-21T09:00:05Z")}, "last\n"},
	} {
		if got := read(t, path, c.options); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
	}
	if got := read(t, logFile(t, ""), Options{TailLines: new(int64(5))}); got != "" {
		t.Errorf("an empty log says %q", got)
	}
	if got := read(t, logFile(t, "2026-11-21T09:00:00Z stdout F no newline yet"), Options{}); got != "no newline yet\n" {
		t.Errorf("a last line without a newline: %q", got)
	}
}

// The last lines are the same as when everything is read, for any mix of whole
// and partial lines, whatever block they end in.
func TestTailIsTheEndOfAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		var content bytes.Buffer
		var whole []string
		var current strings.Builder
		for range 200 + random.IntN(200) {
			tag, length := "F", random.IntN(200)
			if random.IntN(4) == 0 {
				tag = "P"
			}
			if random.IntN(50) == 0 {
				length = blockSize
			}
			text := strings.Repeat(string(rune('a'+random.IntN(26))), length)
			fmt.Fprintf(&content, "2026-11-21T09:00:00.%09dZ stdout %s %s\n", random.IntN(1e9), tag, text)
			current.WriteString(text)
			if tag == "F" {
				whole = append(whole, current.String()+"\n")
				current.Reset()
			}
		}
		if current.Len() > 0 {
			whole = append(whole, current.String())
		}
		path := logFile(t, content.String())
		for _, n := range []int{1, 2, 7, len(whole) - 1, len(whole), len(whole) + 1} {
			want := strings.Join(whole[max(0, len(whole)-n):], "")
			if got := read(t, path, Options{TailLines: new(int64(n))}); got != want {
				t.Fatalf("round %d: the last %d lines have %d bytes, want %d", round, n, len(got), len(want))
			}
		}
	}
}

func TestOverlongLinesAreDropped(t *testing.T) {
	path := logFile(t, "2026-11-21T09:00:00Z stdout F a\n"+strings.Repeat("x", 3*maxLine)+"\n2026-11-21T09:00:00Z stdout F b\n")
	if got := read(t, path, Options{}); got != "a\nb\n" {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.log")
	if _, err := Open(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	target := logFile(t, sample)
	link := filepath.Join(t.TempDir(), "link.log")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if got := read(t, link, Options{TailLines: new(int64(1))}); got != "last\n" {
		t.Errorf("by a symlink: %q", got)
	}
	// Opening a pipe would block until somebody writes.
	pipe := filepath.Join(t.TempDir(), "pipe.log")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(pipe); !errors.Is(err, errNotRegular) {
		t.Errorf("a pipe: error %v", err)
	}
}
