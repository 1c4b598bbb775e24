package podruntime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/simulated"
)

// A pod that its worker and the garbage collector remove at once is removed, by a runtime that, as
// containerd, refuses to remove what it is just removing.
func TestAPodIsRemovedByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var removing atomic.Int32
		goOn := make(chan struct{})
		m := onSimulated(t, func(_ context.Context, method string, call func() error) error {
			if method != "RemoveContainer" {
				return call()
			}
			defer removing.Add(-1)
			if removing.Add(1) > 1 {
				return status.Error(codes.Unknown, "container is already in removing state")
			}
			<-goOn
			return call()
		})
		pod := newPod("web", shell("main", forever))
		r := m.SyncPod(t.Context(), pod, &runtimestate.PodStatus{UID: pod.UID}, SyncOptions{})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		running := r.Status.RunningPod("simulated")
		errs := make([]error, 2)
		var both sync.WaitGroup
		for i := range errs {
			both.Go(func() { errs[i] = m.RemovePod(t.Context(), running) })
		}
		synctest.Wait() // the first is at it, and the second has come
		ended, end := context.WithCancel(t.Context())
		end()
		if err := m.RemovePod(ended, running); !errors.Is(err, context.Canceled) {
			t.Errorf("one whose time is over waits: %v", err)
		}
		close(goOn)
		both.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if len(m.removals.busy) != 0 {
			t.Errorf("left: %v", m.removals.busy)
		}
	})
}

// onSimulated is a Manager on a runtime in memory.
func onSimulated(t *testing.T, fault func(ctx context.Context, method string, call func() error) error) *Manager {
	t.Helper()
	client := cri.NewOver(simulated.New(simulated.Options{Clock: clock.RealClock{}, Fault: fault}).Connection(), cri.Options{})
	reader, err := runtimestate.NewReader(t.Context(), client, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m, err := New(client, reader, Config{
		Events: &eventLog{}, Clock: clock.RealClock{}, Logger: zap.NewNop(), PodLogsDir: dir, HostIPs: hostIPs,
		Configs: newConfigs(t, runtimeconfig.Options{
			Environment: &environment.Sources{}, Reported: func() *runtimeapi.StatusResponse { return nil }, RootDir: dir, PodLogsDir: dir,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
