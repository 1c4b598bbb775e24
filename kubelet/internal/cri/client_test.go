package cri_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/simulated"
)

func TestEndpoints(t *testing.T) {
	for _, bad := range []string{"", "containerd.sock", "tcp://127.0.0.1:1", "npipe:////./pipe/x"} {
		if _, err := cri.New(bad, cri.Options{}); err == nil {
			t.Errorf("New(%q): no error", bad)
		}
	}
}

func TestAbsentRuntimeIsUnavailable(t *testing.T) {
	c, err := cri.New(filepath.Join(t.TempDir(), "none.sock"), cri.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Version(t.Context())
	if !cri.IsUnavailable(err) || !strings.Contains(err.Error(), "Version") {
		t.Fatalf("Version = %v, want an unavailable error that names the call", err)
	}
}

// A runtime that accepts connections and never answers must not hold a call
// beyond its deadline.
func TestSilentRuntimeMeetsDeadline(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "silent.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := cri.New(socket, cri.Options{Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Version(t.Context()); !errors.Is(err, context.DeadlineExceeded) && !cri.IsUnavailable(err) {
		t.Fatalf("Version = %v, want the deadline", err)
	}
}

// What a runtime says can have any length, because it repeats what a registry told it, and
// goes into events and statuses.
func TestTheTextOfErrorsIsBounded(t *testing.T) {
	runtime := simulated.New(simulated.Options{Clock: clock.RealClock{}, Fault: func(context.Context, string, func() error) error {
		return status.Error(codes.NotFound, "pulling: "+strings.Repeat("é", 1<<20)+": that is why")
	}})
	_, err := cri.NewOver(runtime.Connection(), cri.Options{}).PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "x"}, nil, nil)
	if !cri.IsNotFound(err) {
		t.Fatalf("error %.100v", err)
	}
	for _, text := range []string{cri.Message(err), cri.MessageWithCode(err), cri.GRPCMessage(err), err.Error()} {
		if len(text) > 4200 || !utf8.ValidString(text) || !strings.Contains(text, "pulling: é") || !strings.HasSuffix(text, "é: that is why") {
			t.Errorf("%d bytes: %.50s", len(text), text)
		}
	}
}

func TestContainerd(t *testing.T) {
	observed := map[string]int{}
	d := critest.Start(t)
	c, err := cri.New(d.Endpoint, cri.Options{Observe: func(method string, _ time.Duration, _ error) { observed[method]++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if driver, err := c.CgroupDriver(t.Context()); err != nil || driver != "cgroupfs" {
		t.Errorf("its cgroup driver is %q, %v", driver, err)
	}
	ctx := t.Context()
	version, err := c.Version(ctx)
	if err != nil || version.GetRuntimeName() != "containerd" {
		t.Fatalf("Version = %v, %v", version, err)
	}
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "u1"},
		LogDirectory: t.TempDir(),
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: d.CgroupRoot + "/pod"},
	}
	id, err := c.RunPodSandbox(ctx, sandbox, "")
	if err != nil {
		t.Fatal(err)
	}
	status, err := c.PodSandboxStatus(ctx, id)
	if err != nil || status.GetNetwork().GetIp() == "" {
		t.Fatalf("PodSandboxStatus = %v, %v; want an IP", status, err)
	}
	container, err := c.CreateContainer(ctx, id, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"},
		Image:    &runtimeapi.ImageSpec{Image: critest.BusyboxImage},
		Command:  []string{"/bin/sleep", "1000"},
		LogPath:  "c.log",
	}, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.StartContainer(ctx, container); err != nil {
		t.Fatal(err)
	}
	pid, err := c.ContainerProcess(ctx, container)
	if err != nil {
		t.Fatal(err)
	}
	var command []byte
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		command, err = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return string(command) != "runc\x00init\x00", err // which becomes the container's process
	}); err != nil || string(command) != "/bin/sleep\x001000\x00" {
		t.Errorf("its process is %d, %q, %v", pid, command, err)
	}
	ran, err := c.ExecSync(ctx, container, []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, time.Minute)
	if err != nil || string(ran.Stdout) != "out\n" || string(ran.Stderr) != "err\n" || ran.ExitCode != 3 {
		t.Fatalf("ExecSync = %+v, %v", ran, err)
	}
	if _, err := c.ExecSync(ctx, container, []string{"/bin/sleep", "1000"}, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("ExecSync past its timeout = %v, want the deadline", err)
	}
	if err := c.StopContainer(ctx, container, 0); err != nil {
		t.Fatal(err)
	}
	if pid, err := c.ContainerProcess(ctx, container); pid != 0 || err != nil {
		t.Errorf("the process of one that has ended is %d, %v", pid, err)
	}
	if _, err := c.ContainerStatus(ctx, "none"); !cri.IsNotFound(err) || !strings.Contains(err.Error(), "ContainerStatus none") {
		t.Fatalf("ContainerStatus of nothing = %v, want not found, naming call and id", err)
	}
	if image, err := c.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: "critest.local/none:1"}); image != nil || err != nil {
		t.Fatalf("ImageStatus of nothing = %v, %v; want neither", image, err)
	}
	if strings.HasPrefix(version.GetRuntimeVersion(), "1.6") {
		events, err := c.Events(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := events.Recv(); !cri.IsUnimplemented(err) {
			t.Errorf("Events of an old containerd = %v, want unimplemented", err)
		}
	}
	if observed["StartContainer"] != 1 {
		t.Errorf("observed %v, want one StartContainer", observed)
	}
}

func TestConnectsAgainAfterRestart(t *testing.T) {
	d := critest.Start(t)
	d.Down(t)
	if _, err := d.Client().Version(t.Context()); !cri.IsUnavailable(err) {
		t.Fatalf("Version of a stopped containerd = %v", err)
	}
	d.Up(t)
	if _, err := d.Client().Version(t.Context()); err != nil {
		t.Fatal(err)
	}
}
