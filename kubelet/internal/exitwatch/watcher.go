package exitwatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
)

// Runtime is asked for single containers.
type Runtime interface {
	// ContainerProcess is the process of a running container; 0 where it can't be told.
	ContainerProcess(ctx context.Context, id string) (int, error)
	ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error)
}

const (
	asking = 4 // bounds how many containers the runtime is asked for at one time
	// A runtime knows about the end of a process some time after the kernel: it
	// removes the container's namespaces and mounts first. It is asked repeatedly,
	// for a second.
	settling = 10 * time.Millisecond
	settled  = 100
)

// errNoProcess is about a container whose process is not reported: asking again is no use.
var errNoProcess = errors.New("the runtime does not tell the container's process")

// Watcher waits for the ends of processes. Its methods are for one goroutine.
type Watcher struct {
	runtime Runtime
	ended   func(container string)
	clock   clock.Clock
	logger  *zap.Logger

	turns   chan struct{}
	waiting sync.WaitGroup

	mu      sync.Mutex
	watched map[string]context.CancelFunc // by container
}

// New returns a Watcher that calls ended, from any goroutine, each time the
// process of a container has ended and the runtime knows it.
func New(runtime Runtime, ended func(container string), clock clock.Clock, logger *zap.Logger) *Watcher {
	return &Watcher{
		runtime: runtime, ended: ended, clock: clock, logger: logger,
		turns: make(chan struct{}, asking), watched: map[string]context.CancelFunc{},
	}
}

// Watch waits from now on for the ends of just these containers' processes, each
// until it is no longer named or ctx ends.
func (w *Watcher) Watch(ctx context.Context, running map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
				w.ended(id)
			case ctx.Err() == nil:
				w.logger.Debug("the end of a container will be seen by listing", zap.String("container", id), zap.Error(err))
				if !errors.Is(err, errNoProcess) {
					w.forget(id)
				}
			}
		})
	}
}

// forget makes the next Watch try again.
func (w *Watcher) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.watched[id]; stop != nil {
		stop()
		delete(w.watched, id)
	}
}

// Wait returns when all waiting has ended, after the end of Watch's ctx.
func (w *Watcher) Wait() { w.waiting.Wait() }

// await returns nil when the container's process has ended, and the runtime
// knows or has had enough time to.
func (w *Watcher) await(ctx context.Context, id string) error {
	process, err := w.open(ctx, id)
	if err != nil {
		return err
	}
	defer process.Close()
	defer context.AfterFunc(ctx, func() { process.Close() })()
	if err := awaitEnd(process); err != nil {
		return err
	}
	for range settled {
		if err := backoff.Sleep(ctx, w.clock, settling); err != nil {
			return err
		}
		if w.known(ctx, id) {
			break
		}
	}
	return ctx.Err()
}

// known tells whether the runtime knows that the container has ended. If the
// runtime does not answer, the caller has to ask again after it hears of the
// end.
func (w *Watcher) known(ctx context.Context, id string) bool {
	if w.turn(ctx) != nil {
		return true
	}
	defer func() { <-w.turns }()
	status, err := w.runtime.ContainerStatus(ctx, id)
	return err != nil || status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING
}

// turn waits until fewer questions than allowed are in flight.
func (w *Watcher) turn(ctx context.Context) error {
	select {
	case w.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open returns a descriptor of the container's process. If that has ended
// meanwhile and its number was reused, the cost is a useless look at the
// runtime later.
func (w *Watcher) open(ctx context.Context, id string) (*os.File, error) {
	if err := w.turn(ctx); err != nil {
		return nil, err
	}
	defer func() { <-w.turns }()
	pid, err := w.runtime.ContainerProcess(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("ask for the container's process: %w", err)
	}
	if pid <= 0 {
		return nil, errNoProcess
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
