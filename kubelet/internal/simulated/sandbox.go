package simulated

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"net/netip"
)

// sandbox is guarded by Runtime.mu; its config never changes.
type sandbox struct {
	id, name string
	config   *runtimeapi.PodSandboxConfig
	handler  string
	ready    bool
	created  int64
	address  netip.Addr // not valid in the host's network
}

// RunPodSandbox makes a sandbox that is ready.
func (r *Runtime) RunPodSandbox(ctx context.Context, request *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	config := request.GetConfig()
	m := config.GetMetadata()
	if m == nil {
		return nil, status.Error(codes.InvalidArgument, "sandbox config must include metadata")
	}
	if handler := request.GetRuntimeHandler(); handler != "" && !slices.Contains(r.Handlers, handler) {
		return nil, status.Errorf(codes.Unknown, "no runtime for %q is configured", handler)
	}
	if err := r.take(ctx, r.Sandbox); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := fmt.Sprintf("%s_%s_%s_%d", m.GetName(), m.GetNamespace(), m.GetUid(), m.GetAttempt())
	id, err := r.reserve(name)
	if err != nil {
		return nil, err
	}
	s := &sandbox{id: id, name: name, config: config, handler: request.GetRuntimeHandler(), ready: true, created: r.Clock.Now().UnixNano()}
	if config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() != runtimeapi.NamespaceMode_NODE {
		if s.address, err = r.address(); err != nil {
			delete(r.names, name)
			return nil, err
		}
	}
	r.sandboxes[id] = s
	r.tell(runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, id, s)
	r.tell(runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, id, s)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

// address takes the lowest free address, leaving out the network's own.
func (r *Runtime) address() (netip.Addr, error) {
	for a := r.Addresses.Masked().Addr().Next(); r.Addresses.Contains(a); a = a.Next() {
		if !r.addresses[a] {
			r.addresses[a] = true
			return a, nil
		}
	}
	return netip.Addr{}, status.Errorf(codes.Unknown, "no addresses left in %s", r.Addresses)
}

// StopPodSandbox ends what runs in the sandbox, and gives its address back.
func (r *Runtime) StopPodSandbox(ctx context.Context,
	request *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	if err := r.take(ctx, r.Stop); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[request.GetPodSandboxId()]; s != nil {
		r.stopSandbox(s)
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (r *Runtime) stopSandbox(s *sandbox) {
	for _, c := range r.containersOf(s.id) {
		r.end(c, killed)
	}
	if !s.ready {
		return
	}
	s.ready = false
	delete(r.addresses, s.address)
	r.tell(runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, s.id, s)
}

// RemovePodSandbox removes the sandbox and all in it.
func (r *Runtime) RemovePodSandbox(_ context.Context,
	request *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[request.GetPodSandboxId()]; s != nil {
		r.stopSandbox(s)
		for _, c := range r.containersOf(s.id) {
			r.remove(c)
		}
		delete(r.sandboxes, s.id)
		delete(r.names, s.name)
		r.tell(runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, s.id, s)
	}
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus returns a sandbox's status.
func (r *Runtime) PodSandboxStatus(_ context.Context,
	request *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[request.GetPodSandboxId()]
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "an error occurred when try to find sandbox %q: not found", request.GetPodSandboxId())
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: s.status()}, nil
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	result := &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created, RuntimeHandler: s.handler,
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), Network: &runtimeapi.PodSandboxNetworkStatus{},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
	}
	if s.ready && s.address.IsValid() {
		result.Network.Ip = s.address.String()
	}
	return result
}

// ListPodSandbox lists the sandboxes that match.
func (r *Runtime) ListPodSandbox(_ context.Context, request *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	filter := request.GetFilter()
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := &runtimeapi.ListPodSandboxResponse{}
	for _, s := range r.sandboxes {
		if filter.GetId() != "" && filter.GetId() != s.id || filter.GetState() != nil && filter.GetState().GetState() != s.state() ||
			!matches(filter.GetLabelSelector(), s.config.GetLabels()) {
			continue
		}
		answer.Items = append(answer.Items, &runtimeapi.PodSandbox{
			Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created,
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: s.handler,
		})
	}
	return answer, nil
}
