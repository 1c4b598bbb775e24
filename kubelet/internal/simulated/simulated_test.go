package simulated

import (
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
)

// reached runs a test over a socket and without one: both must behave the same.
func reached(t *testing.T, o Options, test func(t *testing.T, r *Runtime, c *cri.Client)) {
	t.Run("in process", func(t *testing.T) {
		r := New(o)
		test(t, r, cri.NewOver(r.Connection(), cri.Options{}))
	})
	t.Run("socket", func(t *testing.T) {
		r := New(o)
		server := grpc.NewServer()
		r.Register(server)
		path := filepath.Join(t.TempDir(), "cri.sock")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		c, err := cri.New(path, cri.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		test(t, r, c)
	})
}

func box(name string, annotations map[string]string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "ns", Uid: name}, Labels: map[string]string{"name": name}, Annotations: annotations,
	}
}

var main = &runtimeapi.ContainerConfig{
	Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: "image"}, Labels: map[string]string{"container": "main"},
}

// run creates a sandbox with a running container.
func run(t *testing.T, c *cri.Client, config *runtimeapi.PodSandboxConfig) (sandboxID, containerID string) {
	t.Helper()
	ctx := t.Context()
	sandboxID, err := c.RunPodSandbox(ctx, config, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PullImage(ctx, main.Image, nil, config); err != nil {
		t.Fatal(err)
	}
	if containerID, err = c.CreateContainer(ctx, sandboxID, main, config); err != nil {
		t.Fatal(err)
	}
	if err := c.StartContainer(ctx, containerID); err != nil {
		t.Fatal(err)
	}
	return sandboxID, containerID
}

func state(t *testing.T, c *cri.Client, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	status, err := c.ContainerStatus(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestAPodsLife(t *testing.T) {
	reached(t, Options{Clock: clock.RealClock{}}, func(t *testing.T, _ *Runtime, c *cri.Client) {
		ctx := t.Context()
		sandboxID, id := run(t, c, box("a", nil))
		status, err := c.PodSandboxStatus(ctx, sandboxID)
		if err != nil || status.GetState() != runtimeapi.PodSandboxState_SANDBOX_READY || status.GetNetwork().GetIp() != "10.88.0.1" {
			t.Errorf("sandbox %v, %v", status, err)
		}
		if s := state(t, c, id); s.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING || s.GetLabels()["container"] != "main" || s.GetStartedAt() == 0 {
			t.Errorf("container %v", s)
		}
		if result, err := c.ExecSync(ctx, id, []string{"true"}, time.Second); err != nil || result.ExitCode != 0 {
			t.Errorf("exec: %v, %v", result, err)
		}
		if list, err := c.ListContainers(ctx, &runtimeapi.ContainerFilter{
			PodSandboxId: sandboxID, LabelSelector: map[string]string{"container": "main"},
		}); err != nil || len(list) != 1 {
			t.Errorf("list: %v, %v", list, err)
		}
		if list, err := c.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"container": "other"}}); err != nil || len(list) != 0 {
			t.Errorf("list of others: %v, %v", list, err)
		}
		if stats, err := c.ListContainerStats(ctx, nil); err != nil || len(stats) != 1 || stats[0].GetMemory().GetWorkingSetBytes().GetValue() != memory {
			t.Errorf("stats: %v, %v", stats, err)
		}
		if err := c.StopContainer(ctx, id, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if s := state(t, c, id); s.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || s.GetExitCode() != 0 || s.GetReason() != "Completed" ||
			s.GetFinishedAt() == 0 {
			t.Errorf("stopped container %v", s)
		}
		for range 2 { // a second stop or removal succeeds
			if err := c.StopPodSandbox(ctx, sandboxID); err != nil {
				t.Fatal(err)
			}
			if err := c.RemovePodSandbox(ctx, sandboxID); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.ContainerStatus(ctx, id); !cri.IsNotFound(err) {
			t.Errorf("a container outlived its sandbox: %v", err)
		}
		if again, _ := run(t, c, box("a", nil)); again == sandboxID {
			t.Error("an id was given twice")
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	reached(t, Options{Clock: clock.RealClock{}, Handlers: []string{"vm"}}, func(t *testing.T, _ *Runtime, c *cri.Client) {
		ctx := t.Context()
		sandboxID, id := run(t, c, box("a", nil))
		if _, err := c.RunPodSandbox(ctx, box("a", nil), ""); err == nil {
			t.Error("two sandboxes of one name")
		}
		if _, err := c.RunPodSandbox(ctx, box("b", nil), "none"); err == nil {
			t.Error("a handler that is not there")
		}
		if _, err := c.RunPodSandbox(ctx, box("b", nil), "vm"); err != nil {
			t.Error(err)
		}
		missing := &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "missing"}, Image: &runtimeapi.ImageSpec{Image: "missing"}}
		if _, err := c.CreateContainer(ctx, sandboxID, missing, nil); !cri.IsNotFound(err) {
			t.Errorf("an image that is not there: %v", err)
		}
		if err := c.StartContainer(ctx, id); err == nil {
			t.Error("started twice")
		}
		if err := c.StopPodSandbox(ctx, sandboxID); err != nil {
			t.Fatal(err)
		}
		if s := state(t, c, id); s.GetExitCode() != killed {
			t.Errorf("exit code %d of what its sandbox took along", s.GetExitCode())
		}
		if _, err := c.CreateContainer(ctx, sandboxID, main, nil); err == nil {
			t.Error("a container in a sandbox that is stopped")
		}
		if _, err := c.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: id}); !cri.IsUnimplemented(err) {
			t.Errorf("a stream to nowhere: %v", err)
		}
	})
}

func TestContainersEndAsTheyAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cri.NewOver(New(Options{Clock: clock.RealClock{}}).Connection(), cri.Options{})
		_, failing := run(t, c, box("a", map[string]string{ExitAfter: "1m", ExitCode: "3"}))
		_, stubborn := run(t, c, box("b", map[string]string{Stubborn: "true"}))
		time.Sleep(59 * time.Second) // the bubble's clock
		if s := state(t, c, failing); s.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			t.Errorf("it is %v before its time", s.GetState())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if s := state(t, c, failing); s.GetExitCode() != 3 || s.GetReason() != "Error" {
			t.Errorf("it is %v and ended with %d, %s", s.GetState(), s.GetExitCode(), s.GetReason())
		}
		start := time.Now()
		if err := c.StopContainer(t.Context(), stubborn, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if s := state(t, c, stubborn); s.GetExitCode() != killed || time.Since(start) != 10*time.Second {
			t.Errorf("exit code %d of what had to be killed, after %v", s.GetExitCode(), time.Since(start))
		}
	})
}

func TestEvents(t *testing.T) {
	reached(t, Options{Clock: clock.RealClock{}}, func(t *testing.T, r *Runtime, c *cri.Client) {
		stream, err := c.Events(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for r.Listeners() == 0 {
			time.Sleep(time.Millisecond)
		}
		sandboxID, id := run(t, c, box("a", nil))
		if err := c.RemovePodSandbox(t.Context(), sandboxID); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			id   string
			kind runtimeapi.ContainerEventType
		}{
			{sandboxID, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT}, {sandboxID, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT},
			{id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT}, {id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT},
			{id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT}, {sandboxID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT},
			{id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT}, {sandboxID, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT},
		} {
			event, err := stream.Recv()
			if err != nil || event.GetContainerId() != want.id || event.GetContainerEventType() != want.kind ||
				event.GetPodSandboxStatus().GetMetadata().GetUid() != "a" {
				t.Fatalf("event %v, %v; want %v", event, err, want)
			}
		}
		r.Disconnect()
		if _, err := stream.Recv(); err == nil {
			t.Error("the stream goes on")
		}
	})
}
