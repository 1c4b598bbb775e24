package logs

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// The watcher reports some errors while nobody can add or remove watches: when a
// directory was moved and removed, as whoever may write where logs are can do.
func TestWatchesOfADirectoryThatIsMovedAndRemoved(t *testing.T) {
	watches, kept := new(Watches), logFile(t, sample)
	stays := watched(t, watches, kept)
	defer leave(stays)
	for round := range 60 {
		dir := filepath.Join(t.TempDir(), "container")
		path := filepath.Join(dir, "0.log")
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		goes := watched(t, watches, path)
		stays.mu.Lock() // the notification of the next file waits for it
		err := errors.Join(os.WriteFile(kept+".next", []byte(sample), 0o600), os.Rename(kept+".next", kept))
		for i := range round % 4 { // others wait behind it
			err = errors.Join(err, os.Truncate(kept, int64(i)), os.Chmod(kept, 0o600))
		}
		// The removal is complete only with the file closed.
		err = errors.Join(err, os.Rename(dir, dir+".moved"), goes.log.Close(), os.RemoveAll(dir+".moved"))
		var begun, others sync.WaitGroup
		for range 20 {
			begun.Add(1)
			others.Go(func() {
				begun.Done()
				leave(watched(t, watches, kept))
			})
		}
		begun.Wait()
		stays.mu.Unlock()
		others.Wait() // for ever, if they waited for the notification, and it for them
		leave(goes)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func watched(t *testing.T, watches *Watches, path string) *follower {
	t.Helper()
	log, err := Open(path)
	if err != nil {
		t.Error(err)
		return &follower{log: &Log{}}
	}
	f := newFollower(log, Options{Watches: watches})
	if f.watches == nil {
		t.Error("the log is not watched")
	}
	return f
}

func leave(f *follower) {
	f.close()
	_ = f.log.Close() // it was only read
}

// Followers of one log, in a directory that is replaced, come and go.
func TestWatchesOfOneLog(t *testing.T) {
	watches, path := new(Watches), filepath.Join(t.TempDir(), "container", "0.log")
	write := func() {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(sample), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	first, second := watched(t, watches, path), watched(t, watches, path)
	write()
	<-first.heard
	<-second.heard
	leave(first)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	write()
	third := watched(t, watches, path)
	write()
	<-third.heard
	leave(second)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write()
	if lost, err := third.reopen(); lost != 0 || err != nil {
		t.Errorf("the next file: %d lost, %v", lost, err)
	}
	leave(third)
	if watches.watcher != nil || len(watches.dirs) != 0 || len(watches.followers) != 0 {
		t.Errorf("left: %v, %v, %v", watches.watcher, watches.dirs, watches.followers)
	}
}

// A file that can't be opened for now, on a file system that hangs, keeps no other follower
// from being notified, or from going.
func TestWatchesOfALogThatHangs(t *testing.T) {
	watches, hangs, works := new(Watches), logFile(t, sample), logFile(t, sample)
	stuck, other := watched(t, watches, hangs), watched(t, watches, works)
	stuck.mu.Lock() // what opens the next file waits for it
	if err := errors.Join(os.WriteFile(hangs+".next", []byte(sample), 0o600), os.Rename(hangs+".next", hangs)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(works+".next", []byte(sample), 0o600), os.Rename(works+".next", works)); err != nil {
		t.Fatal(err)
	}
	<-other.heard
	if lost, err := other.reopen(); lost != 0 || err != nil {
		t.Errorf("the next file: %d lost, %v", lost, err)
	}
	leave(other)
	stuck.mu.Unlock()
	leave(stuck)
}

// A log is rotated twice while its next file is being opened to be held, and the reader opens
// the newest itself: the one in between must not be read after it, and that one then again.
func TestWatchesOfALogThatIsRotatedTwice(t *testing.T) {
	path := logFile(t, "first")
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	f := newFollower(log, Options{})
	defer f.close()
	replace := func(content string) {
		t.Helper()
		if err := errors.Join(os.Rename(path, path+"."+content), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	replace("second")
	second, err := OpenRegular(path)
	if err != nil {
		t.Fatal(err)
	}
	replace("third")
	if _, err := f.reopen(); err != nil {
		t.Fatal(err)
	}
	if f.keep(second, 0) {
		t.Error("a file is kept that the reader has gone past")
	}
	f.hold()
	if is, err := f.isMoved(); is || err != nil || len(f.next) > 0 {
		t.Errorf("the newest would be read again: %v, %v", is, err)
	}
	replace("fourth")
	f.hold()
	if len(f.next) != 1 {
		t.Errorf("%d files are held, want the fourth", len(f.next))
	}
}
