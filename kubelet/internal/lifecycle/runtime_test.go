package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// eventLog keeps events as "Reason: message".
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *eventLog) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, reason+": "+fmt.Sprintf(format, args...))
}

func (l *eventLog) ContainerEventf(_ *core.Pod, _, eventType, reason, format string, args ...any) {
	l.Eventf(nil, eventType, reason, format, args...)
}

func (l *eventLog) StartPod() func() { return func() {} }

func (l *eventLog) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool { return strings.Contains(line, part) })
}

// newLifecycle returns a Lifecycle on a simulated runtime; fault intercepts the
// runtime's calls.
func newLifecycle(t *testing.T, fault func(ctx context.Context, method string, call func() error) error) (*Lifecycle, *simulated.Runtime) {
	t.Helper()
	box := simulated.New(simulated.Options{Clock: clock.RealClock{}, Fault: fault})
	client := cri.NewOver(box.Connection(), cri.Options{})
	t.Cleanup(func() { client.Close() })
	dir, events := t.TempDir(), &eventLog{}
	state, err := runtimestate.NewReader(t.Context(), client, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	configs, err := runtimeconfig.New(runtimeconfig.Options{
		Environment: &environment.Sources{}, Reported: func() *runtimeapi.StatusResponse { return nil }, RootDir: dir, PodLogsDir: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := podruntime.New(client, state, podruntime.Config{
		Events: events, Configs: configs, Clock: clock.RealClock{}, Logger: zap.NewNop(), PodLogsDir: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{
		RootDir: dir, PodLogsDir: dir, Pods: podmanager.New(), Cache: podcache.New(), State: state, Runtime: pods,
		Events: events, Clock: clock.RealClock{}, Logger: zap.NewNop(),
	}), box
}

// sandbox is a sandbox in the runtime.
type sandbox struct {
	id     string
	config *runtimeapi.PodSandboxConfig
}

// sandboxOf creates a pod's sandbox in the runtime.
func sandboxOf(t *testing.T, box *simulated.Runtime, pod *core.Pod) sandbox {
	t.Helper()
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID)},
		Labels:   runtimestate.SandboxLabels(pod), Annotations: pod.Annotations,
	}
	made, err := box.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return sandbox{made.PodSandboxId, config}
}

// runs starts a container in a sandbox.
func runs(t *testing.T, box *simulated.Runtime, in sandbox) {
	t.Helper()
	image := &runtimeapi.ImageSpec{Image: "registry.example/a:1"}
	if _, err := box.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: image}); err != nil {
		t.Fatal(err)
	}
	container, err := box.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId:  in.id,
		SandboxConfig: in.config,
		Config:        &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Labels: in.config.Labels, Image: image},
	})
	if err == nil {
		_, err = box.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId})
	}
	if err != nil {
		t.Fatal(err)
	}
}
