package podruntime

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// A kubelet that is killed while it creates pods leaves them half done. The
// next one gets each of them running, with one sandbox and one container.
func TestDyingAtAnyMoment(t *testing.T) {
	b := newBed(t)
	for i := range 12 {
		client, err := cri.New(b.containerd.Endpoint, cri.Options{})
		if err != nil {
			t.Fatal(err)
		}
		reader, err := runtimestate.NewReader(t.Context(), client, b.Clock)
		if err != nil {
			t.Fatal(err)
		}
		dying, err := New(client, reader, b.Config)
		if err != nil {
			t.Fatal(err)
		}
		pod := newPod(fmt.Sprintf("pod%d", i), shell("main", forever))
		after := time.Duration(i) * 15 * time.Millisecond // a whole start takes about 120 ms
		death := time.AfterFunc(after, func() { _ = client.Close() })
		died := dying.SyncPod(t.Context(), pod, &runtimestate.PodStatus{UID: pod.UID}, SyncOptions{})
		death.Stop()
		_ = client.Close()
		final := b.untilSynced(t, pod)
		ready := 0
		for _, s := range final.Sandboxes {
			if s.Ready {
				ready++
			}
		}
		if ready != 1 || len(final.Running()) != 1 {
			t.Errorf("death after %v (%v) ends with\n%s", after, died.Err, show(final))
		}
	}
}

// untilSynced calls SyncPod, as a worker would, until it succeeds.
func (b *bed) untilSynced(t *testing.T, pod *core.Pod) *runtimestate.PodStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r := b.sync(t, pod, SyncOptions{})
		if r.Err == nil && r.RetryAfter == 0 {
			return b.status(t, pod)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("pod %s never came to run: %v\n%s", pod.Name, r.Err, show(r.Status))
		case <-tick.C:
		}
	}
}

func TestRuntimeThatIsAway(t *testing.T) {
	b := newBed(t)
	pod := newPod("away", shell("main", forever))
	first := b.sync(t, pod, SyncOptions{})
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	b.containerd.Down(t)
	other := newPod("other", shell("main", forever))
	r := b.SyncPod(t.Context(), other, &runtimestate.PodStatus{UID: other.UID}, SyncOptions{})
	if !cri.IsUnavailable(r.Err) || !strings.Contains(r.Err.Error(), "RunPodSandbox") {
		t.Errorf("Err = %v, want one that names the call that the runtime did not take", r.Err)
	}
	if _, err := b.PodStatus(t.Context(), pod.UID, pod.Name, pod.Namespace); !cri.IsUnavailable(err) {
		t.Errorf("PodStatus = %v", err)
	}
	b.containerd.Up(t)
	if again := b.untilSynced(t, pod); again.Container("main").ID != first.Status.Container("main").ID {
		t.Error("a container that went on without the runtime was replaced")
	}
	if len(b.untilSynced(t, other).Running()) != 1 {
		t.Error("the other pod does not run")
	}
}

// The failure of a sandbox is reported at once, not after the pull beside it.
func TestFailedSandboxWaitsForNoPull(t *testing.T) {
	b := newBed(t, func(c *Config) { c.RuntimeHandler = func(class string) (string, error) { return class, nil } })
	l, err := net.Listen("tcp", "127.0.0.1:0") // a registry that accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pod := newPod("stuck", core.Container{Name: "main", Image: l.Addr().String() + "/app:1"})
	none := "none"
	pod.Spec.RuntimeClassName = &none
	r := b.sync(t, pod, SyncOptions{})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "no runtime for \"none\"") {
		t.Errorf("Err = %v", r.Err)
	}
	if !b.events.has("FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = ") || b.events.has("Failed to pull") ||
		b.events.has("InspectFailed") {
		t.Errorf("events %q", b.events.lines)
	}
}

func TestWrongRuntimeSaysSo(t *testing.T) {
	client, err := cri.New(t.TempDir()+"/none.sock", cri.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := Config{Events: &eventLog{}, Clock: clock.RealClock{}, PodLogsDir: "/y"}
	if _, err := New(client, nil, c); err == nil || !strings.Contains(err.Error(), "Logger") {
		t.Errorf("without a logger: %v", err)
	}
}

// losesAnswers is a connection on which the first call of a method is carried
// out and its answer lost.
type losesAnswers struct {
	grpc.ClientConnInterface
	method string
	calls  int
}

func (c *losesAnswers) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	err := c.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
	if strings.HasSuffix(method, c.method) {
		if c.calls++; c.calls == 1 && err == nil {
			return status.Error(codes.Unknown, "ttrpc: closed")
		}
	}
	return err
}

func TestAStopWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	runtime := &losesAnswers{ClientConnInterface: simulated.New(simulated.Options{Clock: clock.RealClock{}}).Connection(), method: "/StopContainer"}
	dir := t.TempDir()
	client := cri.NewOver(runtime, cri.Options{})
	reader, err := runtimestate.NewReader(t.Context(), client, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(client, reader, Config{
		Events: &eventLog{}, Clock: clock.RealClock{}, Logger: zap.NewNop(), PodLogsDir: dir, HostIPs: hostIPs,
		Configs: newConfigs(t, runtimeconfig.Options{
			Environment: &environment.Sources{}, Reported: func() *runtimeapi.StatusResponse { return nil }, RootDir: dir, PodLogsDir: dir,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	pod := newPod("web", shell("main", forever))
	r := m.SyncPod(t.Context(), pod, &runtimestate.PodStatus{UID: pod.UID}, SyncOptions{})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if err := m.KillPod(t.Context(), pod, r.Status.RunningPod(reader.Name()), nil); err != nil || runtime.calls != 2 {
		t.Errorf("KillPod = %v, after %d calls", err, runtime.calls)
	}
}
