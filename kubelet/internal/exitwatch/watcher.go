package exitwatch

import (
	"context"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// Processes tells the process of a running container; 0 where it can't be told.
type Processes interface {
	ContainerProcess(ctx context.Context, id string) (int, error)
}

// asking bounds how many processes are asked for at one time.
const asking = 4

// Watcher waits for the ends of processes. Its methods are for one goroutine.
type Watcher struct {
	processes Processes
	ended     func()
	logger    *zap.Logger

	turns   chan struct{}
	waiting sync.WaitGroup
	watched map[string]context.CancelFunc // by container
}

// New returns a Watcher that calls ended, from any goroutine, each time a
// process has ended.
func New(processes Processes, ended func(), logger *zap.Logger) *Watcher {
	return &Watcher{
		processes: processes, ended: ended, logger: logger,
		turns: make(chan struct{}, asking), watched: map[string]context.CancelFunc{},
	}
}

// Watch waits from now on for the ends of just these containers' processes, each
// until it is named no more or ctx ends.
func (w *Watcher) Watch(ctx context.Context, running map[string]bool) {
	for id, stop := range w.watched {
		if !running[id] {
			stop()
			delete(w.watched, id)
		}
	}
	for id := range running {
		if w.watched[id] != nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		w.watched[id] = stop
		w.waiting.Go(func() {
			switch err := w.await(ctx, id); {
			case err == nil:
				w.ended()
			case ctx.Err() == nil:
				w.logger.Debug("the end of a container will be seen by listing", zap.String("container", id), zap.Error(err))
			}
		})
	}
}

// Wait returns when nothing is waited for any more, after the end of Watch's ctx.
func (w *Watcher) Wait() { w.waiting.Wait() }

// await returns nil when the container's process has ended.
func (w *Watcher) await(ctx context.Context, id string) error {
	process, err := w.open(ctx, id)
	if err != nil {
		return err
	}
	defer process.Close()
	defer context.AfterFunc(ctx, func() { process.Close() })()
	return awaitEnd(process)
}

// open gives a descriptor of the container's process. A process that has ended
// meanwhile, and whose number is another's by now, costs a useless look at the
// runtime later.
func (w *Watcher) open(ctx context.Context, id string) (*os.File, error) {
	select {
	case w.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-w.turns }()
	pid, err := w.processes.ContainerProcess(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("ask for the container's process: %w", err)
	}
	if pid <= 0 {
		return nil, fmt.Errorf("the runtime does not tell the container's process")
	}
	return openProcess(pid)
}

// openProcess returns a descriptor that becomes readable when the process ends
// (pidfd_open(2)).
func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK) // else a wait for it would hold a thread
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("process %d", pid)), nil
}

// awaitEnd returns nil when the process has ended, and an error if the file is
// closed before.
func awaitEnd(process *os.File) error {
	conn, err := process.SyscallConn()
	if err != nil {
		return fmt.Errorf("wait for %s: %w", process.Name(), err)
	}
	err = conn.Read(func(fd uintptr) bool {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && ready > 0
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", process.Name(), err)
	}
	return nil
}
