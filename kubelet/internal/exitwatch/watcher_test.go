package exitwatch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// processes are those of containers, by name.
type processes map[string]int

func (p processes) ContainerProcess(_ context.Context, id string) (int, error) {
	pid, ok := p[id]
	if !ok {
		return 0, errors.New("no such container")
	}
	return pid, nil
}

func (p processes) ContainerStatus(context.Context, string) (*runtimeapi.ContainerStatus, error) {
	return &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_EXITED}, nil
}

// slow is a runtime that takes a while to notice an end.
type slow struct {
	processes
	left atomic.Int32 // how often it still says that the container runs
}

func (s *slow) ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	if s.left.Add(-1) >= 0 {
		return &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_RUNNING}, nil
	}
	return s.processes.ContainerStatus(ctx, id)
}

// sleeper starts a process that lasts until it is killed.
func sleeper(t *testing.T) *exec.Cmd {
	cmd := exec.Command("sleep", "infinity")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// start returns a Watcher for the processes, and the channel of reported ends.
func start(t *testing.T, r Runtime) (*Watcher, context.Context, <-chan string) {
	ends := make(chan string, 10)
	w := New(r, func(container string) { ends <- container }, clock.RealClock{}, zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); w.Wait() })
	return w, ctx, ends
}

func TestTheEndOfAProcessIsTold(t *testing.T) {
	one, other := sleeper(t), sleeper(t)
	w, ctx, ends := start(t, processes{"one": one.Process.Pid, "other": other.Process.Pid})
	both := map[string]bool{"one": true, "other": true}
	w.Watch(ctx, both)
	w.Watch(ctx, both)
	kill(t, one)
	if id := <-ends; id != "one" {
		t.Errorf("%s ended", id)
	}
	kill(t, other)
	if id := <-ends; id != "other" {
		t.Errorf("%s ended", id)
	}
	w.Wait() // each was waited for once
	if len(ends) > 0 {
		t.Errorf("%d more ends than processes", len(ends))
	}
}

func TestTheRuntimeKnowsBeforeAnEndIsTold(t *testing.T) {
	cmd := sleeper(t)
	r := &slow{processes: processes{"c": cmd.Process.Pid}}
	r.left.Store(3)
	w, ctx, ends := start(t, r)
	w.Watch(ctx, map[string]bool{"c": true})
	kill(t, cmd)
	if <-ends; r.left.Load() != -1 {
		t.Errorf("told while the runtime would say %d more times that it runs", r.left.Load())
	}
}

func TestAProcessThatHasEndedIsToldAtOnce(t *testing.T) {
	cmd := sleeper(t)
	process, err := openProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	kill(t, cmd)
	if err := cmd.Wait(); err == nil {
		t.Fatal("killed, and ended well")
	}
	if err := awaitEnd(process); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotNamedAnyMoreIsNotWaitedFor(t *testing.T) {
	cmd := sleeper(t)
	before := descriptors(t)
	w, ctx, ends := start(t, processes{"c": cmd.Process.Pid})
	w.Watch(ctx, map[string]bool{"c": true})
	w.Watch(ctx, nil)
	w.Wait()
	if len(ends) > 0 {
		t.Error("the end of a live process was reported")
	}
	if after := descriptors(t); after > before+1 { // one for the poller itself
		t.Errorf("%d descriptors are open, %d were before", after, before)
	}
}

func TestWhatCanNotBeWatchedIsLeft(t *testing.T) {
	w, ctx, ends := start(t, processes{"untold": 0, "unseen": 1 << 30})
	w.Watch(ctx, map[string]bool{"untold": true, "unseen": true, "gone": true})
	w.Wait()
	if len(ends) > 0 {
		t.Errorf("%d ends of no process", len(ends))
	}
}

// busy is a runtime that does not answer the first call.
type busy struct {
	processes
	asked atomic.Int32
}

func (b *busy) ContainerProcess(ctx context.Context, id string) (int, error) {
	if b.asked.Add(1) == 1 {
		return 0, errors.New("busy")
	}
	return b.processes.ContainerProcess(ctx, id)
}

func TestWhoseProcessWasNotToldIsAskedForAgain(t *testing.T) {
	cmd := sleeper(t)
	w, ctx, ends := start(t, &busy{processes: processes{"c": cmd.Process.Pid}})
	w.Watch(ctx, map[string]bool{"c": true})
	w.Wait()
	w.Watch(ctx, map[string]bool{"c": true})
	kill(t, cmd)
	if id := <-ends; id != "c" {
		t.Errorf("%s ended", id)
	}
	untold := &busy{processes: processes{"c": 0}}
	untold.asked.Store(1)
	w, ctx, _ = start(t, untold)
	for range 3 {
		w.Watch(ctx, map[string]bool{"c": true})
		w.Wait()
	}
	if asked := untold.asked.Load(); asked != 2 {
		t.Errorf("a runtime that does not tell was asked %d times", asked-1)
	}
}

func descriptors(t *testing.T) int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
