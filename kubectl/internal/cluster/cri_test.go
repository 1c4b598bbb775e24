package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeServer is a runtime on the gRPC library that runtimes use.
type runtimeServer struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	mu         sync.Mutex
	conditions []*runtimeapi.RuntimeCondition
	config     string
	sandboxes  []*runtimeapi.PodSandbox
	ended      []string
}

func (s *runtimeServer) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "test"}, nil
}

func (s *runtimeServer) Status(_ context.Context, r *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: s.conditions},
		Info:   map[string]string{"verbose": fmt.Sprint(r.Verbose), "config": s.config},
	}, nil
}

func (s *runtimeServer) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &runtimeapi.ListPodSandboxResponse{Items: s.sandboxes}, nil
}

func (s *runtimeServer) StopPodSandbox(_ context.Context, r *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PodSandboxId == "missing" {
		return nil, status.Error(codes.NotFound, "no such sandbox")
	}
	s.ended = append(s.ended, r.PodSandboxId)
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// kctl's calls without the gRPC library are understood by that library, and its
// answers by kctl.
func TestRuntimeCalls(t *testing.T) {
	dir, err := os.MkdirTemp("", "cri-") // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := Layout{Dir: dir}
	if err := os.MkdirAll(filepath.Dir(l.Socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", l.Socket())
	if err != nil {
		t.Fatal(err)
	}
	fake := &runtimeServer{conditions: []*runtimeapi.RuntimeCondition{{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Status: true},
		{Type: "ContainerdHasNoDeprecationWarnings"}}}
	for _, name := range []string{"one", "two"} {
		fake.sandboxes = append(fake.sandboxes, &runtimeapi.PodSandbox{
			Id:        "id-" + name,
			CreatedAt: 1,
			Labels:    map[string]string{"x": "y"},
			State:     runtimeapi.PodSandboxState_SANDBOX_NOTREADY,
			Metadata:  &runtimeapi.PodSandboxMetadata{Name: name, Uid: "u", Namespace: "ns", Attempt: 3},
		})
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, fake)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})

	runtime := l.runtime()
	defer runtime.close()
	ctx := t.Context()
	for told, want := range map[string]RuntimeNetwork{
		"": {}, "[crio]": {}, `{"cni": 1}`: {},
		`{"cni": {"binDir": "/opt/cni/bin", "confDir": "/etc/cni/net.d"}}`:           {Plugins: []string{"/opt/cni/bin"}, Config: "/etc/cni/net.d"},
		`{"cni": {"binDir": "", "binDirs": ["/a", "/b"], "confDir": "/c"}, "x": {}}`: {Plugins: []string{"/a", "/b"}, Config: "/c"},
	} {
		fake.mu.Lock()
		fake.config = told
		fake.mu.Unlock()
		if got, err := runtime.network(ctx); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", told, got, err, want)
		}
	}
	if err := errors.Join(runtime.version(ctx), runtime.notReady(ctx)); err != nil {
		t.Error(err)
	}
	all, err := runtime.sandboxes(ctx)
	if want := []sandbox{{"id-one", "ns", "one"}, {"id-two", "ns", "two"}}; err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("sandboxes %v, %v, want %v", all, err, want)
	}
	if err := runtime.endSandbox(ctx, "StopPodSandbox", "id-one"); err != nil {
		t.Error(err)
	}
	if err := runtime.endSandbox(ctx, "StopPodSandbox", "missing"); err == nil || !strings.Contains(err.Error(), "no such sandbox") {
		t.Errorf("of a sandbox that is not there: %v", err)
	}
	if err := runtime.endSandbox(ctx, "RemovePodSandbox", "id-one"); err == nil || !strings.Contains(err.Error(), "not implemented") {
		t.Errorf("of a call that is not there: %v", err)
	}
	late, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
	defer cancel()
	if err := runtime.endSandbox(late, "StopPodSandbox", "id-two"); err == nil || err.Error() != "StopPodSandbox: context deadline exceeded" {
		t.Errorf("of a runtime that has no time left: %v", err)
	}
	fake.mu.Lock()
	fake.conditions[1] = &runtimeapi.RuntimeCondition{Type: "NetworkReady", Reason: "NoPlugin", Message: "cni is missing"}
	if len(fake.ended) != 1 || fake.ended[0] != "id-one" {
		t.Errorf("ended: %v", fake.ended)
	}
	fake.mu.Unlock()
	if err := runtime.notReady(ctx); err == nil || err.Error() != "container runtime: NetworkReady is false: NoPlugin cni is missing" {
		t.Errorf("a condition that is false: %v", err)
	}
}

func TestGarbledAnswers(t *testing.T) {
	for _, message := range []string{"\xff", "\x0a\x05a", "\x0a", "\x08"} {
		if err := scanMessages([]byte(message), 1, func([]byte) error { return nil }); !errors.Is(err, errMalformed) {
			t.Errorf("%q: %v", message, err)
		}
	}
}
