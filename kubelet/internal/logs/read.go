package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
)

// Options select a part of a log. The zero value selects all that is there.
type Options struct {
	Follow     bool
	Timestamps bool
	TailLines  *int64
	LimitBytes *int64
	Since      time.Time
	Stream     string // "stdout" or "stderr"; both if empty
	// Running tells whether the container may write more. It is called while some
	// process writes to the log, and by a follower when nothing came for a while.
	// May be nil without a follower: the log is then read as it is.
	Running func(ctx context.Context) (bool, error)
	// Flush sends on what was written so far; it is called whenever there is
	// nothing more at the moment. May be nil.
	Flush func()
	// Watches notify a follower of what is new; without them it looks each second.
	Watches *Watches
	Clock   clock.Clock
}

// Log is an open log.
type Log struct {
	path string
	file *os.File
}

// Open opens the log at path, which may be a symlink to it.
func Open(path string) (*Log, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("failed to open log file: %w", err)
	}
	file, err := OpenRegular(resolved)
	if err != nil {
		return nil, fmt.Errorf("failed to open log file: %w", err)
	}
	return &Log{path: resolved, file: file}, nil
}

var errNotRegular = errors.New("not a regular file")

// OpenRegular opens a regular file for reading. Anyone who may write where logs
// and messages are may put something else there, and a pipe would block its
// reader for ever. Links are followed unless flags has O_NOFOLLOW.
func OpenRegular(path string, flags ...int) (*os.File, error) {
	mode := os.O_RDONLY | unix.O_NONBLOCK
	for _, flag := range flags {
		mode |= flag
	}
	file, err := os.OpenFile(path, mode, 0)
	if errors.Is(err, unix.ELOOP) {
		err = &os.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		_ = file.Close() // nothing was read
		return nil, err
	}
	return file, nil
}

// Close closes the log.
func (l *Log) Close() error { return l.file.Close() }

// Read writes the selected part of the log to out. It returns when that is
// done: for a follower, when the container has ended and all its output was
// written, or with ctx's error.
func (l *Log) Read(ctx context.Context, out io.Writer, o Options) error {
	if err := l.complete(ctx, o); err != nil {
		return err
	}
	if err := l.seek(o); err != nil {
		return err
	}
	w := newWriter(out, o)
	if w.left == 0 {
		return nil
	}
	err := l.copy(ctx, w, o)
	if errors.Is(err, errLimit) {
		err = nil
	}
	return errors.Join(err, flush(w, o))
}

func (l *Log) seek(o Options) error {
	if o.TailLines == nil {
		return nil
	}
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("looking at the log: %w", err)
	}
	start, err := findTail(l.file, info.Size(), *o.TailLines)
	if err != nil {
		return err
	}
	if _, err := l.file.Seek(start, io.SeekStart); err != nil {
		return fmt.Errorf("going to the log's last lines: %w", err)
	}
	return nil
}

func flush(w *writer, o Options) error {
	if err := w.out.Flush(); err != nil {
		return err
	}
	if o.Flush != nil {
		o.Flush()
	}
	return nil
}

// copy writes the lines that are there, and for a follower those that follow.
func (l *Log) copy(ctx context.Context, w *writer, o Options) error {
	lines := &lines{}
	if o.Follow {
		return l.follow(ctx, lines, w, o)
	}
	if err := l.drain(ctx, lines, w); err != nil {
		return err
	}
	return lines.rest(w.line)
}

// follow writes lines until the container has ended.
func (l *Log) follow(ctx context.Context, lines *lines, w *writer, o Options) error {
	follower := newFollower(l, o)
	defer follower.close()
	for {
		if err := l.drain(ctx, lines, w); err != nil {
			return err
		}
		if err := flush(w, o); err != nil {
			return err
		}
		next, err := follower.wait(ctx)
		if err != nil {
			return err
		}
		if next == grown {
			continue
		}
		if err := l.finish(ctx, next, lines, w, o); err != nil || next == ended {
			return err
		}
		lost, err := follower.reopen()
		if err == nil && lost > 0 {
			err = w.missing(lost)
		}
		if err != nil {
			return err
		}
	}
}

// finish writes what is still in a file that ended, or was moved, since the last look.
func (l *Log) finish(ctx context.Context, why change, lines *lines, w *writer, o Options) error {
	var err error
	if why == ended {
		err = l.complete(ctx, o)
	} else { // the runtime begins the next file before it lets go of this one
		err = awaitComplete(ctx, l.file, o.Clock)
	}
	if err == nil {
		err = l.drain(ctx, lines, w)
	}
	if err == nil {
		err = lines.rest(w.line)
	}
	return err
}

// drain writes every whole line up to the present end of the file.
func (l *Log) drain(ctx context.Context, lines *lines, w *writer) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := lines.fill(l.file)
		if n > 0 {
			if err := lines.each(w.line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
	}
}

// lines puts lines together from what is read.
type lines struct {
	buffer   []byte
	overlong bool // the line that is being read is dropped up to its newline
}

func (s *lines) fill(r io.Reader) (int, error) {
	if cap(s.buffer)-len(s.buffer) < blockSize/2 {
		grown := make([]byte, len(s.buffer), 2*cap(s.buffer)+blockSize)
		copy(grown, s.buffer)
		s.buffer = grown
	}
	n, err := r.Read(s.buffer[len(s.buffer):cap(s.buffer)])
	s.buffer = s.buffer[:len(s.buffer)+n]
	return n, err
}

// each calls f with every whole line that was read.
func (s *lines) each(f func(line []byte) error) error {
	rest := s.buffer
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		if !s.overlong {
			if err := f(rest[:i+1]); err != nil {
				return err
			}
		}
		s.overlong = false
		rest = rest[i+1:]
	}
	if len(rest) > maxLine {
		rest, s.overlong = nil, true
	}
	s.buffer = append(s.buffer[:0], rest...)
	return nil
}

// rest calls f with a last line that has no newline.
func (s *lines) rest(f func(line []byte) error) error {
	last := s.buffer
	s.buffer = s.buffer[:0]
	if len(last) == 0 || s.overlong {
		return nil
	}
	return f(last)
}
