package filesystem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"kctl/kubelet/internal/filesystem/filesystemtest"
)

func TestSpaceOfASmallDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,nr_inodes=10"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	before, err := Of(dir)
	if err != nil || before.Capacity != 64<<10 || before.Available != 64<<10 || before.Used != 0 || before.Inodes != 10 {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 16<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := Of(filepath.Join(dir, "file"))
	if err != nil || after.Used != 16<<10 || after.Available != 48<<10 || after.InodesUsed() != before.InodesUsed()+1 || after.InodesFree != before.InodesFree-1 {
		t.Errorf("%+v, %v", after, err)
	}
	if _, err := Of(filepath.Join(dir, "none")); !errors.Is(err, unix.ENOENT) {
		t.Errorf("of what is not there: %v", err)
	}
}

// A volume whose server has gone keeps one thread of the kubelet, not one for everyone who
// asks: Go ends a process that has 10,000.
func TestAFileSystemThatDoesNotAnswer(t *testing.T) {
	dir := t.TempDir()
	end := filesystemtest.MountSilent(t, dir)
	before := threads(t)
	for range 100 {
		var group errgroup.Group
		for range 5 {
			group.Go(func() error {
				if space, err := Of(dir); !errors.Is(err, ErrSilent) || space != (Space{}) {
					return fmt.Errorf("%+v, %v", space, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if now := threads(t); now > before+10 {
		t.Errorf("%d threads, %d before", now, before)
	}
	end()
	for errors.Is(ofError(dir), ErrSilent) { // until the kernel has told that it is gone
		runtime.Gosched()
	}
	if space, err := Of(dir); err != nil || space.Capacity == 0 {
		t.Errorf("once it is gone: %+v, %v", space, err)
	}
}

// A server that always takes longer than others may, but does answer, can be used: at the second
// try. One that has gone meanwhile keeps nobody waiting for long.
func TestAFileSystemThatAnswersLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := 3 * time.Second
		q := newQuestions(func(string) (Space, error) {
			time.Sleep(takes) // of the bubble's time
			return Space{Capacity: 1}, nil
		})
		expect := func(patient, answer bool, within time.Duration) {
			t.Helper()
			start := time.Now()
			space, err := q.about("/slow", patient)
			if took := time.Since(start); answer != (err == nil && space.Capacity == 1) || !answer && !errors.Is(err, ErrSilent) || took != within {
				t.Errorf("%+v, %v after %v", space, err, took)
			}
			synctest.Wait()
		}
		expect(true, false, answerWithin)
		time.Sleep(takes)
		expect(false, false, answerWithin)
		expect(true, true, time.Second) // of the same question
		expect(true, true, takes)
		takes = time.Hour
		expect(true, false, 6*time.Second)
		expect(true, false, 0)
		time.Sleep(takes)
		expect(true, false, mostPatience)
		takes = time.Second
		time.Sleep(time.Hour)
		expect(true, true, takes)
		takes = 3 * time.Second
		expect(true, false, answerWithin) // it was prompt the last time
		time.Sleep(takes)
	})
}

func ofError(path string) error {
	_, err := Of(path)
	return err
}

func threads(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
