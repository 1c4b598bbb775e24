package logs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/utils/clock"
)

// lookAgain is how long a follower relies on being told: after that it looks
// for itself, and asks whether the container runs.
const lookAgain = time.Second

// happened is what a follower waited for.
type happened int

const (
	grown happened = iota // there may be more in the file
	moved                 // another file has taken the file's place
	ended                 // the container runs no more
)

// follower waits for a log to grow. The directory is watched, not the file,
// because the log's next file appears there.
type follower struct {
	log     *Log
	running func(ctx context.Context) (bool, error)
	clock   clock.Clock
	watcher *fsnotify.Watcher // nil where the kernel has no more to give
}

func newFollower(log *Log, o Options) *follower {
	f := &follower{log: log, running: o.Running, clock: o.Clock}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return f // looking each second will do
	}
	if err := watcher.Add(filepath.Dir(log.path)); err != nil {
		_ = watcher.Close()
		return f
	}
	f.watcher = watcher
	return f
}

func (f *follower) close() {
	if f.watcher != nil {
		_ = f.watcher.Close()
	}
}

// wait returns when something happened to the log.
func (f *follower) wait(ctx context.Context) (happened, error) {
	// The file may have grown between the last read and the watch's beginning;
	// the size tells without another read.
	if more, err := f.more(); err != nil || more {
		return grown, err
	}
	if is, err := f.isMoved(); err != nil || is {
		return moved, err
	}
	var events chan fsnotify.Event
	var failures chan error
	if f.watcher != nil {
		events, failures = f.watcher.Events, f.watcher.Errors
	}
	timer := f.clock.NewTimer(lookAgain)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ended, ctx.Err()
		case event := <-events:
			if event.Name != f.log.path {
				continue
			}
			if event.Has(fsnotify.Create) || event.Has(fsnotify.Rename) {
				if is, err := f.isMoved(); err != nil || is {
					return moved, err
				}
			}
			return grown, nil
		case <-failures:
			return grown, nil // events may be lost: look
		case <-timer.C():
			return f.look(ctx)
		}
	}
}

// look finds out what happened when nothing was heard.
func (f *follower) look(ctx context.Context) (happened, error) {
	running, err := f.running(ctx)
	if err != nil {
		return ended, fmt.Errorf("asking whether the container runs: %w", err)
	}
	if is, err := f.isMoved(); err != nil || is {
		return moved, err
	}
	if !running {
		return ended, nil
	}
	return grown, nil
}

func (f *follower) more() (bool, error) {
	info, err := f.log.file.Stat()
	if err != nil {
		return false, fmt.Errorf("looking at the log: %w", err)
	}
	at, err := f.log.file.Seek(0, 1)
	if err != nil {
		return false, fmt.Errorf("looking at the log: %w", err)
	}
	if info.Size() < at {
		// Somebody cut the file short: what comes is at its new end.
		_, err = f.log.file.Seek(0, 0)
		return true, err
	}
	return info.Size() > at, nil
}

// isMoved tells whether the log's path is another file by now. While it is
// none, the next one is still to come.
func (f *follower) isMoved() (bool, error) {
	now, err := os.Stat(f.log.path)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the log's next file: %w", err)
	}
	open, err := f.log.file.Stat()
	if err != nil {
		return false, fmt.Errorf("looking at the log: %w", err)
	}
	return !os.SameFile(now, open), nil
}
