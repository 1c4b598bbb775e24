package logs

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/utils/clock"
)

// lookAgain is how long a follower relies on notifications: after that it looks
// for itself, and asks whether the container runs.
const lookAgain = time.Second

// change is what a follower waited for.
type change int

const (
	grown change = iota // there may be more in the file
	moved               // another file has taken the file's place
	ended               // the container has ended
)

// heldFiles bounds the files that are held open for a follower: as many as the
// kubelet keeps of a container by default.
const heldFiles = 5

// follower waits for a log to grow. The directory is watched, not the file,
// because the log's next file appears there. It is opened as soon as it does: for
// a reader that is slower than the log it may be packed or gone when its turn comes.
type follower struct {
	log     *Log
	running func(ctx context.Context) (bool, error)
	clock   clock.Clock
	watches *Watches      // nil if nothing is watched
	heard   chan struct{} // holds one token when something happened at the log's path
	created chan struct{} // holds one token when a file appeared there; closed when nothing is watched any more

	mu       sync.Mutex
	closed   bool        // nothing is held any more
	newest   os.FileInfo // of the files that had the log's path
	next     []*os.File  // that have it or had it since, the oldest first
	lost     int         // that had it before these, and will not be read
	reopened int         // how many the reader has opened itself
}

func newFollower(log *Log, o Options) *follower {
	f := &follower{log: log, running: o.Running, clock: o.Clock, heard: make(chan struct{}, 1), created: make(chan struct{}, 1)}
	var err error
	if f.newest, err = log.file.Stat(); err != nil || o.Watches == nil {
		return f // looking each second will do
	}
	if err := o.Watches.add(f); err == nil {
		f.watches = o.Watches
		go f.holdAll()
	}
	return f
}

// close does not wait for a file that is being opened: the file system may hang.
func (f *follower) close() {
	if f.watches != nil {
		f.watches.remove(f)
		close(f.created) // nobody notifies it any more
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, file := range f.next {
		_ = file.Close() // it was not even read
	}
	f.next = nil
}

// notify takes note of what happened at the log's path. It waits for nothing, because
// all followers are notified by one goroutine.
func (f *follower) notify(event fsnotify.Event) {
	if event.Has(fsnotify.Create) {
		select {
		case f.created <- struct{}{}:
		default: // whatever is there is opened
		}
		return // the reader is woken by then
	}
	f.wake()
}

// holdAll opens the files that appear, until the follower is closed.
func (f *follower) holdAll() {
	for range f.created {
		f.hold()
		f.wake()
	}
}

// wake makes the reader look.
func (f *follower) wake() {
	select {
	case f.heard <- struct{}{}:
	default: // there is a look to come
	}
}

// hold opens the file that has appeared at the log's path. If there are too many, the
// oldest is not read, and reopen says so: holding all of them would occupy as much
// disk as a container can fill while somebody's terminal is paused.
func (f *follower) hold() {
	for held := false; !held; {
		f.mu.Lock()
		reopened := f.reopened
		f.mu.Unlock()
		file, err := OpenRegular(f.log.path)
		if err != nil {
			return // moved away again, or nothing to read; the reader looks itself
		}
		held = f.keep(file, reopened)
	}
}

// keep takes a file over that was opened after the reader had opened so many itself. It
// reports false if the reader has opened another meanwhile, which may be newer: it must not
// be read before this one.
func (f *follower) keep(file *os.File, reopened int) bool {
	info, err := file.Stat()
	f.mu.Lock()
	defer f.mu.Unlock()
	current := reopened == f.reopened
	if err != nil || f.closed || !current || os.SameFile(info, f.newest) {
		_ = file.Close()
		return err != nil || f.closed || current
	}
	f.newest = info
	if f.next = append(f.next, file); len(f.next) > heldFiles {
		_ = f.next[0].Close()
		f.next = f.next[1:]
		f.lost++
	}
	return true
}

// reopen continues with the next file after the one that was read, and says how
// many files in between can no longer be read.
func (f *follower) reopen() (lost int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.next) == 0 {
		file, err := OpenRegular(f.log.path)
		if err != nil {
			return 0, fmt.Errorf("opening the log's next file: %w", err)
		}
		if f.newest, err = file.Stat(); err != nil {
			_ = file.Close()
			return 0, fmt.Errorf("looking at the log's next file: %w", err)
		}
		f.next = append(f.next, file)
		f.reopened++
	}
	_ = f.log.file.Close() // it was only read
	f.log.file, f.next = f.next[0], f.next[1:]
	lost, f.lost = f.lost, 0
	return lost, nil
}

// wait returns when something happened to the log.
func (f *follower) wait(ctx context.Context) (change, error) {
	// The file may have grown between the last read and the watch's beginning;
	// the size tells without another read.
	if more, err := f.more(); err != nil || more {
		return grown, err
	}
	if is, err := f.isMoved(); err != nil || is {
		return moved, err
	}
	timer := f.clock.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ended, ctx.Err()
	case <-f.heard:
		return grown, nil // or moved, which the next look finds
	case <-timer.C():
		return f.look(ctx)
	}
}

// look finds out what happened when there was no notification.
func (f *follower) look(ctx context.Context) (change, error) {
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
		// Somebody truncated the file: new lines come at its new end.
		_, err = f.log.file.Seek(0, 0)
		return true, err
	}
	return info.Size() > at, nil
}

// isMoved tells whether there is a next file: one that is held, or another at the
// log's path. If there is none at the path, the next is still to come.
func (f *follower) isMoved() (bool, error) {
	f.mu.Lock()
	held := len(f.next) > 0
	f.mu.Unlock()
	if held {
		return true, nil
	}
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
