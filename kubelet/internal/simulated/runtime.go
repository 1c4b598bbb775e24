package simulated

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// runtimeName is the runtime's, as in simulated://0123….
const runtimeName = "simulated"

// Options are a Runtime's settings. Only Clock has to be given.
type Options struct {
	Clock clock.WithDelayedExecution
	// How long those calls take that cost a real runtime time.
	Sandbox, Create, Start, Stop, Pull time.Duration
	// Behave says how a container will end; Annotated if nil.
	Behave Behave
	// Addresses are those of sandboxes: 10.88.0.0/16 if not set.
	Addresses netip.Prefix
	// Handlers are the runtime handlers besides the default one.
	Handlers []string
	// Root is the directory that image file systems are said to be in: "/" if not set.
	Root string
	// Fault, if set, intercepts the unary calls of a Connection, for tests of how
	// callers handle a faulty runtime: it makes the call or not, and its result is
	// what the caller gets.
	Fault func(ctx context.Context, method string, call func() error) error
	// Lie, if set, may change what a Connection's caller gets as an answer or event, for
	// tests of how callers handle a runtime that tells lies.
	Lie func(method string, answer proto.Message)
}

// Behave says how a container of a sandbox will end.
type Behave func(sandbox *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) Behaviour

// Behaviour is what a container does once it runs.
type Behaviour struct {
	// After is when it ends by itself; zero for never.
	After    time.Duration
	ExitCode int32
	// Stubborn containers don't end when asked to, only when killed.
	Stubborn bool
}

// Annotations of pods that Annotated reads.
const (
	ExitAfter = "simulated.kctl/exit-after" // a duration: 1m30s
	ExitCode  = "simulated.kctl/exit-code"
	Stubborn  = "simulated.kctl/stubborn" // "true"
)

// annotated is the behaviour that a pod's annotations ask for.
func annotated(sandbox *runtimeapi.PodSandboxConfig, _ *runtimeapi.ContainerConfig) Behaviour {
	annotations := sandbox.GetAnnotations()
	b := Behaviour{Stubborn: annotations[Stubborn] == "true"}
	if after, err := time.ParseDuration(annotations[ExitAfter]); err == nil && after > 0 {
		b.After = after
	}
	if _, err := fmt.Sscan(annotations[ExitCode], &b.ExitCode); err != nil {
		b.ExitCode = 0
	}
	return b
}

// Runtime is safe for concurrent use.
type Runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer
	Options

	mu          sync.Mutex
	sandboxes   map[string]*sandbox
	containers  map[string]*container
	images      map[string]*runtimeapi.Image // by reference
	names       map[string]string            // id of what has the name
	addresses   map[netip.Addr]bool          // in use
	subscribers map[chan *runtimeapi.ContainerEventResponse]bool
}

// New returns an empty Runtime.
func New(o Options) *Runtime {
	if o.Behave == nil {
		o.Behave = annotated
	}
	if !o.Addresses.IsValid() {
		o.Addresses = netip.MustParsePrefix("10.88.0.0/16")
	}
	o.Root = cmp.Or(o.Root, "/")
	return &Runtime{
		Options: o, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}, images: map[string]*runtimeapi.Image{},
		names: map[string]string{}, addresses: map[netip.Addr]bool{}, subscribers: map[chan *runtimeapi.ContainerEventResponse]bool{},
	}
}

// Register makes a gRPC server answer for the runtime, on a socket for one.
func (r *Runtime) Register(server *grpc.Server) {
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	runtimeapi.RegisterImageServiceServer(server, r)
}

// Version returns the runtime's name and version.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: runtimeName, RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
}

// Status is always ready.
func (r *Runtime) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	answer := &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}, Features: &runtimeapi.RuntimeFeatures{}}
	for _, name := range append([]string{""}, r.Handlers...) {
		answer.RuntimeHandlers = append(answer.RuntimeHandlers, &runtimeapi.RuntimeHandler{
			Name: name, Features: &runtimeapi.RuntimeHandlerFeatures{},
		})
	}
	return answer, nil
}

// RuntimeConfig returns a cgroup driver.
func (r *Runtime) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// UpdateRuntimeConfig does nothing: addresses of simulated pods don't come from
// the node's pod CIDRs.
func (r *Runtime) UpdateRuntimeConfig(context.Context,
	*runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}

// take makes a call take its time.
func (r *Runtime) take(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	done := make(chan struct{})
	timer := r.Clock.AfterFunc(d, func() { close(done) })
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// reserve reserves the name of something that is about to be made: duplicates
// are refused, as by real runtimes. The caller holds r.mu.
func (r *Runtime) reserve(name string) (id string, err error) {
	if owner, taken := r.names[name]; taken {
		return "", status.Errorf(codes.Unknown, "failed to reserve name %q: it is reserved for %q", name, owner)
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	id = hex.EncodeToString(random)
	r.names[name] = id
	return id, nil
}

// matches says whether all of the selector's labels are among labels.
func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}
