package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
)

// How long, and how often, to look for the end of a log whose container has
// ended, or which was moved aside. The runtime needs a moment; a writer that
// stays longer is some other process.
const (
	completeWithin = 2 * time.Second
	completeLook   = 2 * time.Millisecond
)

// complete returns when the log of an ended container has all its output. A
// runtime may report a container's end while the last lines are still on their
// way into the file, which it keeps open until then. A running container's log
// is never complete: it is read as it is.
func (l *Log) complete(ctx context.Context, o Options) error {
	if o.Running == nil || !beingWritten(l.file) {
		return nil
	}
	running, err := o.Running(ctx)
	if err != nil {
		return fmt.Errorf("asking whether the container runs: %w", err)
	}
	if running {
		return nil
	}
	return awaitComplete(ctx, l.file, o.Clock)
}

// AwaitComplete waits, for two seconds at most, until nobody writes any more to
// the log at path of a container that has ended. It returns ctx's error if ctx
// ends first, and none if there is no log.
func AwaitComplete(ctx context.Context, path string, clock clock.Clock) error {
	file, err := OpenRegular(path)
	if err != nil {
		return nil // who reads it will say so
	}
	defer file.Close()
	return awaitComplete(ctx, file, clock)
}

func awaitComplete(ctx context.Context, file *os.File, clock clock.Clock) error {
	for deadline := clock.Now().Add(completeWithin); beingWritten(file) && clock.Now().Before(deadline); {
		if err := backoff.Sleep(ctx, clock, completeLook); err != nil {
			return err
		}
	}
	return nil
}

// beingWritten tells whether some process has the file open for writing: as long
// as that is so, the kernel grants no read lease (fcntl(2), F_SETLEASE). If it
// grants no leases at all, the answer is no.
func beingWritten(file *os.File) bool {
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	written := false
	_ = raw.Control(func(fd uintptr) {
		if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK); err != nil {
			written = errors.Is(err, unix.EAGAIN)
			return
		}
		_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
	})
	return written
}
