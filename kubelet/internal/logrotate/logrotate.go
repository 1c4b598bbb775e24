package logrotate

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/logs"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/runtimestate"
)

const (
	// timeFormat names a log that was moved aside, so that names sort by time.
	timeFormat = "20060102-150405"
	packed     = ".gz"
	unfinished = ".tmp"
)

// Runtime lists what runs, and reopens containers' logs.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtimestate.RunningPod, error)
}

// Reopener makes the runtime open a container's log again under its name.
type Reopener interface {
	ReopenContainerLog(ctx context.Context, id string) error
}

// Options are what a Rotator works on. All are needed.
type Options struct {
	Runtime    Runtime
	Reopener   Reopener
	PodLogsDir string
	MaxSize    int64         // bytes that a log may have before it is moved aside
	MaxFiles   int           // files of one container, its present log among them; at least two
	Workers    int           // logs that are rotated at one time
	Interval   time.Duration // between two looks at all logs
	Clock      clock.WithTicker
	Logger     *zap.Logger
}

// Rotator rotates one node's logs. Run owns its goroutines.
type Rotator struct{ Options }

// New returns a Rotator that does nothing before Run.
func New(o Options) *Rotator { return &Rotator{Options: o} }

// Run looks at all logs each Interval, until ctx ends.
func (r *Rotator) Run(ctx context.Context) error {
	ticker := r.Clock.NewTicker(r.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := r.Rotate(ctx); err != nil && ctx.Err() == nil {
			r.Logger.Warn("logs could not be rotated", zap.Error(err))
		}
	}
}

// Rotate looks at all logs once. One that can't be rotated holds up no other.
func (r *Rotator) Rotate(ctx context.Context) error {
	pods, err := r.Runtime.Pods(ctx)
	if err != nil {
		return fmt.Errorf("listing containers whose logs may have grown: %w", err)
	}
	work := errgroup.Group{}
	work.SetLimit(r.Workers)
	failed := make(chan error, r.Workers)
	all := make(chan error, 1)
	go func() {
		var errs []error
		for err := range failed {
			errs = append(errs, err)
		}
		all <- errors.Join(errs...)
	}()
	for _, pod := range pods {
		dir := podfiles.LogDirectory(r.PodLogsDir, pod.Namespace, pod.Name, pod.UID)
		for _, container := range pod.Containers {
			if container.State != runtimestate.StateRunning {
				continue
			}
			path := filepath.Join(dir, podfiles.LogPath(container.Name, container.Attempt))
			do := r.due(path)
			if do == nil {
				continue
			}
			work.Go(func() error {
				if err := do(ctx, container.ID.ID, path); err != nil {
					failed <- fmt.Errorf("pod %s/%s, container %s: %w", pod.Namespace, pod.Name, container.Name, err)
				}
				return nil
			})
		}
	}
	_ = work.Wait()
	close(failed)
	return <-all
}

// due is what to do with the log of a running container; nil for nothing.
func (r *Rotator) due(path string) func(ctx context.Context, id, path string) error {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().IsRegular() && info.Size() >= r.MaxSize:
		return r.rotate
	case errors.Is(err, fs.ErrNotExist):
		if older, _ := filepath.Glob(path + ".*"); len(older) > 0 {
			// It was moved aside, and the runtime was not told any more.
			return r.reopen
		}
	}
	return nil // small, not there yet, or the runtime keeps none
}

// reopen makes the runtime begin a new log in place of one that was moved
// aside. Until then it writes into the old one, which nobody reads or limits.
func (r *Rotator) reopen(ctx context.Context, id, _ string) error {
	if err := r.Reopener.ReopenContainerLog(ctx, id); err != nil {
		return fmt.Errorf("reopening a deleted log: %w", err)
	}
	return nil
}

// rotate moves one log aside. Older ones are compressed and thinned out before
// that, so that a full disk gets room first.
func (r *Rotator) rotate(ctx context.Context, id, path string) error {
	older, err := olderLogs(path)
	if err != nil {
		return err
	}
	// Two places are taken: by the current log and by the one that it becomes.
	for len(older) > max(r.MaxFiles-2, 0) {
		if err := os.Remove(older[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the oldest log: %w", err)
		}
		older = older[1:]
	}
	if older, err = packAll(older); err != nil {
		return err
	}
	return r.begin(ctx, id, path, r.aside(path, older))
}

// packAll packs the older logs that are not yet. If the disk is full, the oldest ones go: else
// the one that fills it would be rotated no more, and would leave no room for ever.
func packAll(older []string) (kept []string, err error) {
	for i := 0; i < len(older); {
		if strings.HasSuffix(older[i], packed) {
			i++
			continue
		}
		switch err := pack(older[i]); {
		case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT):
			if err := os.Remove(older[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("removing the oldest log from a full disk: %w", err)
			}
			older, i = older[1:], max(i-1, 0)
		case err != nil:
			return nil, fmt.Errorf("packing an old log: %w", err)
		default:
			i++
		}
	}
	return older, nil
}

// aside is the name that a log is moved to: one that sorts after the older ones,
// even if the machine's clock was set back; otherwise the newest would count as
// the oldest.
func (r *Rotator) aside(path string, older []string) string {
	at := r.Clock.Now().UTC()
	if len(older) > 0 {
		if last, _ := asideAt(path, older[len(older)-1]); !at.Truncate(time.Second).After(last) {
			at = last.Add(time.Second)
		}
	}
	return path + "." + at.Format(timeFormat)
}

// asideAt reads from a log's name when it was moved aside; false if no rotation
// made the name.
func asideAt(path, log string) (at time.Time, ours bool) {
	at, err := time.Parse(timeFormat, strings.TrimSuffix(strings.TrimPrefix(log, path+"."), packed))
	return at, err == nil
}

// olderLogs are the logs that were moved aside, oldest first. The remains of an
// interrupted rotation are removed. Files that somebody else put beside them
// (1.log.bak) are left alone, because their names say nothing about their age, and so
// are links, pipes and directories, which no rotation makes.
func olderLogs(path string) ([]string, error) {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for older logs: %w", err)
	}
	present := map[string]bool{}
	var older []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name+".") {
			continue
		}
		log := filepath.Join(dir, e.Name())
		if _, ours := asideAt(path, strings.TrimSuffix(log, unfinished)); !ours || e.IsDir() {
			continue
		}
		if strings.HasSuffix(log, unfinished) {
			if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("removing an unfinished packed log: %w", err)
			}
			continue
		}
		if !e.Type().IsRegular() {
			continue
		}
		present[log] = true
		older = append(older, log)
	}
	// Compressed and plain at once: compression was interrupted before the plain one was
	// removed.
	older = slices.DeleteFunc(older, func(log string) bool {
		if !strings.HasSuffix(log, packed) && present[log+packed] {
			err = errors.Join(err, os.Remove(log))
			return true
		}
		return false
	})
	slices.Sort(older) // by time, as their names are
	return older, err
}

// begin moves the log aside, to that name, and makes the runtime begin a new one. If that
// fails, the log gets its name back: the runtime still writes to it. If the runtime did begin
// a new one although it reported an error, the new one stays.
func (r *Rotator) begin(ctx context.Context, id, path, aside string) error {
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("moving a log aside: %w", err)
	}
	err := r.Reopener.ReopenContainerLog(ctx, id)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("beginning a new log: %w", err)
	switch back := os.Link(aside, path); { // which, unlike a rename, replaces nothing
	case errors.Is(back, fs.ErrExist):
		return err
	case back != nil:
		return errors.Join(err, back)
	}
	return errors.Join(err, os.Remove(aside))
}

// pack writes path.gz and removes path. The compressed log gets its name only
// when it is complete. Links are not followed: who makes one here must not get what it
// leads to, or have it overwritten.
func pack(path string) (err error) {
	source, err := logs.OpenRegular(path, unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer source.Close()
	temporary := path + unfinished
	target, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary) // the disk may be full
		}
	}()
	writer := gzip.NewWriter(target)
	_, err = io.Copy(writer, source)
	if err = errors.Join(err, writer.Close(), target.Close()); err != nil {
		return err
	}
	if err = os.Rename(temporary, path+packed); err != nil {
		return err
	}
	return os.Remove(path)
}
