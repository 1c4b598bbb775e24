package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/cri"
	machine "kctl/kubelet/internal/node"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/server/auth"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// oneNode is a node with one pod of one container, and the runtime that runs
// it.
type oneNode struct {
	mu      sync.Mutex
	pod     *core.Pod
	status  core.PodStatus
	running bool
	logPath string
	stream  string // the runtime's server for exec, attach and port-forward
	execs   []*runtimeapi.ExecRequest
	// execBegins is called while the runtime is asked, if not nil.
	execBegins func()
	ports      []int32
	// imagesAsked is how often a sandbox's image was.
	imagesAsked int
}

func (n *oneNode) Pods() []*core.Pod { return []*core.Pod{n.pod} }

func (n *oneNode) ByName(namespace, name string) (*core.Pod, bool) {
	return n.pod, namespace == n.pod.Namespace && name == n.pod.Name
}

func (n *oneNode) Status(types.UID) (core.PodStatus, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status, true
}

func (n *oneNode) labels() map[string]string {
	return map[string]string{kubelettypes.KubernetesPodUIDLabel: "uid-1", kubelettypes.KubernetesPodNameLabel: "p", kubelettypes.KubernetesPodNamespaceLabel: "ns",
		kubelettypes.KubernetesContainerNameLabel: "c"}
}

func (n *oneNode) ListContainers(_ context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, value := range filter.GetLabelSelector() {
		if n.labels()[key] != value {
			return nil, nil
		}
	}
	if !n.running {
		return nil, nil
	}
	// If the runtime has two running containers of one name for a moment, the
	// later one is meant, even if the machine's clock was set back in between.
	image, later := &runtimeapi.ImageSpec{Image: "img"}, &runtimeapi.ContainerMetadata{Attempt: 1}
	return []*runtimeapi.Container{
		{Id: "id-0", Labels: n.labels(), Image: image, Metadata: &runtimeapi.ContainerMetadata{}, CreatedAt: 2},
		{Id: "id-1", Labels: n.labels(), Image: image, Metadata: later, CreatedAt: 1},
	}, nil
}

// checkpoints is the directory for checkpoint archives.
func (n *oneNode) checkpoints() string { return filepath.Join(filepath.Dir(n.logPath), "checkpoints") }

func (n *oneNode) CheckpointContainer(_ context.Context, id, path string, timeout time.Duration) error {
	if timeout == 0 {
		return &cri.Error{Verb: "CheckpointContainer", ID: id, Err: status.Error(codes.Unimplemented, "unknown method CheckpointContainer")}
	}
	return os.WriteFile(path, []byte(timeout.String()), 0o600)
}

func (n *oneNode) ListPodSandbox(context.Context, *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running {
		return nil, nil
	}
	return []*runtimeapi.PodSandbox{{Id: "sandbox-1", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "uid-1", Namespace: "ns", Name: "p"}}, {Id: "box-1"}}, nil
}

// sandboxes are those of ListPodSandbox, as the kubelet has them.
func (n *oneNode) sandboxes() []*runtimestate.PodStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running {
		return nil
	}
	return []*runtimestate.PodStatus{
		{UID: "uid-1", Namespace: "ns", Name: "p", Sandboxes: []*runtimestate.SandboxStatus{{ID: "sandbox-1", Ready: true}, {ID: "sandbox-0"}}},
		{Sandboxes: []*runtimestate.SandboxStatus{{ID: "box-1", Ready: true}}},
	}
}

func (n *oneNode) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	ended := map[string]string{kubelettypes.KubernetesPodUIDLabel: "uid-0", kubelettypes.KubernetesPodNameLabel: "ended"}
	return []*runtimeapi.ContainerStats{{
		Attributes:    &runtimeapi.ContainerAttributes{Id: "id-0", Labels: ended},
		WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: 1}},
	}, {
		Attributes: &runtimeapi.ContainerAttributes{Id: "id-1", Labels: n.labels()},
		Cpu:        &runtimeapi.CpuUsage{Timestamp: 1e9, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: 25e8}},
		Memory:     &runtimeapi.MemoryUsage{Timestamp: 1e9, WorkingSetBytes: &runtimeapi.UInt64Value{Value: 4096}},
		Swap: &runtimeapi.SwapUsage{
			Timestamp:          1e9,
			SwapUsageBytes:     &runtimeapi.UInt64Value{Value: 512},
			SwapAvailableBytes: &runtimeapi.UInt64Value{Value: 88},
		},
	}, {Attributes: &runtimeapi.ContainerAttributes{Id: "stranger"}}}, nil
}

func (n *oneNode) SandboxImage(_ context.Context, id string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.imagesAsked++
	return "pause-of-" + id, nil
}

func (n *oneNode) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	eth0 := &runtimeapi.NetworkInterfaceUsage{Name: "eth0", RxBytes: &runtimeapi.UInt64Value{Value: 77}}
	return []*runtimeapi.PodSandboxStats{{
		Attributes: &runtimeapi.PodSandboxAttributes{Id: "box-1", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "uid-1", Namespace: "ns", Name: "p"}},
		Linux: &runtimeapi.LinuxPodSandboxStats{Network: &runtimeapi.NetworkUsage{
			Timestamp: 1e9, DefaultInterface: eth0, Interfaces: []*runtimeapi.NetworkInterfaceUsage{eth0},
		}},
	}}, nil
}

func (n *oneNode) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{
		Timestamp: 1e9, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/"}, UsedBytes: &runtimeapi.UInt64Value{Value: 99},
	}}}, nil
}

func (n *oneNode) ContainerStatus(_ context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	state := runtimeapi.ContainerState_CONTAINER_EXITED
	if n.running {
		state = runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return &runtimeapi.ContainerStatus{Id: id, State: state, LogPath: n.logPath}, nil
}

func (n *oneNode) ExecSync(_ context.Context, _ string, command []string, _ time.Duration) (cri.ExecResult, error) {
	if command[0] == "false" {
		return cri.ExecResult{ExitCode: 1, Stderr: []byte("no")}, nil
	}
	return cri.ExecResult{Stdout: []byte(strings.Join(command, " "))}, nil
}

func (n *oneNode) Exec(ctx context.Context, request *runtimeapi.ExecRequest) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.execs = append(n.execs, request)
	if n.execBegins != nil {
		n.execBegins()
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if n.stream == "" {
		return "", errors.New("the runtime refuses")
	}
	return n.stream, nil
}

func (n *oneNode) Attach(context.Context, *runtimeapi.AttachRequest) (string, error) {
	return n.stream, nil
}

func (n *oneNode) PortForward(_ context.Context, request *runtimeapi.PortForwardRequest) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports = request.GetPort()
	return n.stream, nil
}

func newNode(t *testing.T) (*oneNode, *httptest.Server) {
	t.Helper()
	n := onlyNode(t)
	server := httptest.NewServer(newServer(t, n, auth.Authentication{Anonymous: true}))
	t.Cleanup(server.Close)
	return n, server
}

// onlyNode is a node without a server.
func onlyNode(t *testing.T) *oneNode {
	t.Helper()
	n := &oneNode{
		pod: &core.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-1"},
			Spec: core.PodSpec{Containers: []core.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				"memory": resource.MustParse("8Ki"), "cpu": resource.MustParse("250m"),
			}}}}},
		},
		running: true,
		logPath: filepath.Join(t.TempDir(), "0.log"),
	}
	n.status = core.PodStatus{ContainerStatuses: []core.ContainerStatus{{
		Name: "c", Image: "img:1", ContainerID: "containerd://id-1",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1700000000, 0)}},
	}}}
	if err := os.WriteFile(n.logPath, []byte("2026-11-21T09:00:00Z stdout F one\n2026-11-21T09:00:01Z stderr F two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return n
}

var waited = cgroup.Pressure{
	CPU:    &cgroups.PSIStats{Some: cgroups.PSIData{Avg10: 1.5, Avg60: 2, Avg300: 3, Total: 4e6}},
	Memory: &cgroups.PSIStats{Full: cgroups.PSIData{Total: 5e6}},
	IO:     &cgroups.PSIStats{Some: cgroups.PSIData{Total: 6e6}},
}

func newServer(t *testing.T, n *oneNode, accept auth.Authentication) *Server {
	t.Helper()
	ofProbes := prometheus.NewRegistry()
	ofProbes.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "of_probes"}))
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("node-name", "node-1", "")
	s, err := New(Config{
		Pages: daemon.Pages{Flags: flags}, NodeLogs: filepath.Dir(n.logPath), Checkpoints: n.checkpoints(),
		ProbeMetrics: ofProbes, NodeName: "node-1",
		Authenticator: auth.NewAuthenticator(accept, nil, clock.RealClock{}), Authorizer: auth.AlwaysAllow(),
		Pods: n, Sandboxes: n.sandboxes, Status: n.Status, Runtime: n, Health: daemon.NewHealth(), Metrics: daemon.NewRegistry(),
		Configz: func() any { return map[string]string{"kind": "KubeletConfiguration"} },
		Stats:   measurements(),
		Clock:   clock.RealClock{}, Logger: zap.NewNop(), Debugging: true, Profiling: true, Log: &daemon.LogOptions{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// measurements are one of each kind.
func measurements() Stats {
	return Stats{
		CPUPeriod: cgroup.Period,
		Machine: func() corev1.NodeStatus {
			return corev1.NodeStatus{
				Capacity: corev1.ResourceList{"memory": resource.MustParse("1Ki")},
				NodeInfo: corev1.NodeSystemInfo{BootID: "boot", MachineID: "machine", SystemUUID: "system", Swap: &corev1.NodeSwapStatus{Capacity: new(int64(6))}},
			}
		},
		Usage: func() (machine.Usage, error) {
			return machine.Usage{
				At: time.Unix(7, 0), CPU: 15e8, WorkingSet: 5, Swap: 9, SwapFree: 6, Processes: 3, MaxProcesses: 4, Booted: time.Unix(1, 0),
				Disk: "/dev/sda1", DiskCapacity: 100, DiskAvailable: 50, Pressure: waited, DiskIO: &machine.DiskIO{SectorsRead: 37, WriteTime: 15e8},
				Interfaces: []machine.Interface{{Name: "eth0", RxBytes: 11}},
			}, nil
		},
		Groups: func(uid types.UID, id string) (cgroup.Usage, bool) {
			return cgroup.Usage{CPU: 3e9, Memory: 70, WorkingSet: 60, RSS: 50, Limit: 100, Pressure: waited}, (uid == "" || uid == "uid-1") && (id == "" || id == "id-1")
		},
		Daemons: func() map[string]cgroup.Usage {
			return map[string]cgroup.Usage{"kubelet": {Path: "/system.slice/kubelet.service", CPU: 4e9, Memory: 9, WorkingSet: 8, RSS: 7, PageFaults: 6,
				MajorPageFaults: 5, Started: time.Unix(1, 0)}}
		},
		GroupDetails: func(_ types.UID, id string) (cgroup.Details, bool) {
			of := map[string]string{"id-1": "/kubepods/poduid-1/id-1", "box-1": "/kubepods/poduid-1/box-1", "": "/kubepods/poduid-1"}
			return cgroup.Details{
				Usage: cgroup.Usage{
					Path: of[id], CPU: 35e8, Memory: 71, WorkingSet: 61, RSS: 51, Swap: 16, Limit: 8192, PageFaults: 23, MajorPageFaults: 24,
					Pressure: waited, Started: time.Unix(2, 0),
				},
				CPU: cgroup.CPUDetails{
					User: 4e9, System: 5e8, Periods: 6, Throttled: 2, ThrottledTime: 15e8, Bursts: 3, BurstTime: 25e8, Shares: 102, Quota: 25000, Period: 100000,
				},
				Memory: cgroup.MemoryDetails{
					Cache: 11, Mapped: 12, Peak: 13, AtLimit: 17, Killed: 18, ActiveFile: 25, InactiveFile: 26, Kernel: 27, Reservation: 28, SwapLimit: 29,
					Dirty: 30, Writeback: 31, AtHigh: 32, PagesScanned: 33, PagesFreed: 34, RefaultsFile: 35, RefaultsAnonymous: 36,
				},
				Tasks:     14,
				MaxTasks:  15,
				Processes: []int{os.Getpid()},
				IO:        map[string]cgroup.DeviceIO{"/dev/vda": {Number: "254:0", Reads: 19, ReadBytes: 20, Writes: 21, WriteBytes: 22}},
			}, of[id] != ""
		},
		ClassGroups: func() []cgroup.Details {
			return []cgroup.Details{{Usage: cgroup.Usage{Path: "/kubepods", CPU: 65e8}}}
		},
		PodUsage: func(context.Context) map[types.UID]PodUsage {
			return map[types.UID]PodUsage{"uid-1": {At: metav1.Unix(7, 0), Disk: 21, Inodes: 2, Processes: 5,
				Volumes: map[string]VolumeUsage{"scratch": {Dir: "/proc", Claim: "data", Bytes: 20, Inodes: 3}}, Logs: map[string]LogUsage{"c": {Bytes: 8, Inodes: 1}}}}
		},
	}
}

func get(t *testing.T, server *httptest.Server, path string) (int, string) {
	t.Helper()
	return do(t, server, http.MethodGet, path)
}

// do sends a request with these headers, given as names and values.
func do(t *testing.T, server *httptest.Server, method, path string, headers ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	resp, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
