package logrotate

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/runtimestate"
)

// runtime has one container, which reopens its log when told to.
type runtime struct {
	path    string
	refuses error
	forgets error // instead of an answer
	opened  int
}

func (r *runtime) Pods(context.Context) ([]*runtimestate.RunningPod, error) {
	return []*runtimestate.RunningPod{{UID: "u", Name: "web", Namespace: "shop", Containers: []*runtimestate.RunningContainer{
		{ID: runtimestate.ContainerID{ID: "c1"}, Name: "app", State: runtimestate.StateRunning, Attempt: 1},
		{ID: runtimestate.ContainerID{ID: "c0"}, Name: "app", State: runtimestate.StateExited},
	}}}, nil
}

func (r *runtime) ReopenContainerLog(_ context.Context, id string) error {
	if r.refuses != nil || id != "c1" {
		return r.refuses
	}
	r.opened++
	return errors.Join(os.WriteFile(r.path, []byte("new"), 0o640), r.forgets)
}

func start(t *testing.T) (*Rotator, *runtime, *testingclock.FakeClock) {
	root := t.TempDir()
	path := filepath.Join(root, "shop_web_u", "app", "1.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := &runtime{path: path}
	return New(Options{
		Runtime: r, Reopener: r, PodLogsDir: root, MaxSize: 10, MaxFiles: 3, Workers: 1, Interval: time.Second,
		Clock: clock, Logger: zap.NewNop(),
	}), r, clock
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestALogThatGrew(t *testing.T) {
	rotator, runtime, clock := start(t)
	rotate := func() {
		t.Helper()
		if err := rotator.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Second)
	}
	write(t, runtime.path, "short")
	if rotate(); runtime.opened != 0 || files(t, runtime.path) != "1.log" {
		t.Fatalf("a small log was rotated: %s", files(t, runtime.path))
	}
	for i, want := range []string{
		"1.log 1.log.20260102-030406",
		"1.log 1.log.20260102-030406.gz 1.log.20260102-030407",
		"1.log 1.log.20260102-030407.gz 1.log.20260102-030408",
	} {
		write(t, runtime.path, strings.Repeat("x", 10+i))
		if rotate(); files(t, runtime.path) != want {
			t.Errorf("after %d rotations: %s, want %s", i+1, files(t, runtime.path), want)
		}
	}
	old, err := os.Open(runtime.path + ".20260102-030407.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	text, err := gzip.NewReader(old)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(text); err != nil || string(data) != strings.Repeat("x", 11) {
		t.Errorf("packed log: %q, %v", data, err)
	}
	// The machine's clock was set back: the newest file is not taken for the
	// oldest, and foreign files beside the logs are ignored.
	const foreign = " 1.log.bak"
	write(t, runtime.path+".bak", "somebody's copy")
	clock.SetTime(clock.Now().Add(-time.Hour))
	for _, want := range []string{
		"1.log 1.log.20260102-030408.gz 1.log.20260102-030409",
		"1.log 1.log.20260102-030409.gz 1.log.20260102-030410",
	} {
		write(t, runtime.path, "a log that grew")
		if rotate(); files(t, runtime.path) != want+foreign {
			t.Errorf("after the clock was set back: %s, want %s", files(t, runtime.path), want)
		}
	}
}

// The kubelet was killed between moving a log aside and telling the runtime, or
// the runtime's answer was lost: nothing may be written where nobody reads.
func TestARotationThatWasCutShort(t *testing.T) {
	rotator, runtime, clock := start(t)
	write(t, runtime.path+".20260102-030400", "the runtime writes here")
	if err := rotator.Rotate(t.Context()); err != nil || runtime.opened != 1 || files(t, runtime.path) != "1.log 1.log.20260102-030400" {
		t.Errorf("%v, opened %d times: %s", err, runtime.opened, files(t, runtime.path))
	}
	clock.Step(time.Second)
	write(t, runtime.path, "a log that grew")
	runtime.forgets = errors.New("the answer was lost")
	if err := rotator.Rotate(t.Context()); !errors.Is(err, runtime.forgets) {
		t.Errorf("error %v", err)
	}
	if data, err := os.ReadFile(runtime.path); err != nil || string(data) != "new" {
		t.Errorf("the log that the runtime began is %q, %v", data, err)
	}
}

func TestARuntimeThatDoesNotReopen(t *testing.T) {
	rotator, runtime, _ := start(t)
	runtime.refuses = errors.New("no")
	write(t, runtime.path, "a log that grew")
	if err := rotator.Rotate(t.Context()); !errors.Is(err, runtime.refuses) {
		t.Errorf("error %v", err)
	}
	if data, err := os.ReadFile(runtime.path); err != nil || string(data) != "a log that grew" || files(t, runtime.path) != "1.log" {
		t.Errorf("the runtime writes to a log that nobody reads: %q %v, %s", data, err, files(t, runtime.path))
	}
}

func TestWhatWasCutShort(t *testing.T) {
	rotator, runtime, _ := start(t)
	write(t, runtime.path, "a log that grew")
	write(t, runtime.path+".20260101-000000.tmp", "half")
	write(t, runtime.path+".20260101-000001", "whole")
	write(t, runtime.path+".20260101-000001.gz", "packed")
	if err := rotator.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := files(t, runtime.path); got != "1.log 1.log.20260101-000001.gz 1.log.20260102-030405" {
		t.Error(got)
	}
}

// Who may write where logs are must not make the kubelet read other files, or wait for a
// pipe: a link would become a packed copy of what it leads to, which its maker may read.
func TestWhatIsNoLogIsLeftAlone(t *testing.T) {
	rotator, runtime, clock := start(t)
	secret := filepath.Join(t.TempDir(), "shadow")
	write(t, secret, "root:secret")
	const pipe, link, dir = ".20260101-000000", ".20260101-000001", ".20260101-000002"
	for _, err := range []error{
		unix.Mkfifo(runtime.path+pipe, 0o600), os.Symlink(secret, runtime.path+link),
		os.MkdirAll(filepath.Join(runtime.path+dir, "full"), 0o700), os.MkdirAll(filepath.Join(runtime.path+dir+unfinished, "full"), 0o700),
		os.Symlink(secret, runtime.path+".20260102-030405.tmp"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		write(t, runtime.path, "a log that grew")
		if err := rotator.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Second)
	}
	const want = "1.log 1.log.20260101-000000 1.log.20260101-000001 1.log.20260101-000002 1.log.20260101-000002.tmp 1.log.20260102-030407.gz 1.log.20260102-030408"
	if got := files(t, runtime.path); got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "root:secret" {
		t.Errorf("the file elsewhere has %q, %v", text, err)
	}
	// A link that replaces the log itself is moved by nobody.
	if err := errors.Join(os.Remove(runtime.path), os.Symlink(secret, runtime.path)); err != nil {
		t.Fatal(err)
	}
	if err := rotator.Rotate(t.Context()); err != nil || files(t, runtime.path) != want {
		t.Errorf("a link was rotated: %v, %s", err, files(t, runtime.path))
	}
}

// A link that appears after the look at the directory is not followed, in either place.
func TestPackFollowsNoLinks(t *testing.T) {
	dir := t.TempDir()
	secret, log, link := filepath.Join(dir, "shadow"), filepath.Join(dir, "1.log.a"), filepath.Join(dir, "1.log.b")
	write(t, secret, "root:secret")
	write(t, log, "a log")
	if err := errors.Join(os.Symlink(secret, link), os.Symlink(secret, log+unfinished)); err != nil {
		t.Fatal(err)
	}
	if err := pack(link); err == nil {
		t.Error("what a link leads to was packed")
	}
	if err := pack(log); err == nil {
		t.Error("a log was packed into what a link leads to")
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "root:secret" {
		t.Errorf("the file elsewhere has %q, %v", text, err)
	}
}

// A log that fills the disk is rotated all the same, and makes room: the oldest ones go, and
// those that can't be packed.
func TestALogThatFillsTheDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount a small disk")
	}
	const kib = 1 << 10
	for _, c := range []struct {
		name                   string
		oldest, older, current int
		want                   string
	}{
		{"the oldest is enough", 60 * kib, 40 * kib, 200 * kib, "1.log 1.log.20260102-030404.gz 1.log.20260102-030405"},
		{"nothing is", 8 * kib, 100 * kib, 200 * kib, "1.log 1.log.20260102-030405"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rotator, runtime, _ := start(t)
			rotator.MaxFiles = 5
			dir := filepath.Dir(runtime.path)
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := unix.Unmount(dir, 0); err != nil {
					t.Error(err)
				}
			})
			write(t, runtime.path+".20260102-030403.gz", noise(c.oldest))
			write(t, runtime.path+".20260102-030404", noise(c.older))
			// As much of it as there is room for: the writer may fail.
			if err := os.WriteFile(runtime.path, []byte(noise(c.current)), 0o640); !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("the disk is not full: %v", err)
			}
			if err := rotator.Rotate(t.Context()); err != nil || files(t, runtime.path) != c.want || runtime.opened != 1 {
				t.Errorf("%v: %s, want %s", err, files(t, runtime.path), c.want)
			}
		})
	}
}

// noise can't be compressed.
func noise(length int) string {
	random := rand.NewChaCha8([32]byte{})
	text := make([]byte, length)
	_, _ = random.Read(text) // it does not fail
	return string(text)
}
