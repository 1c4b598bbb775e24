package simulated

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// killed is the exit code of a killed container.
const killed = 137

// container is guarded by Runtime.mu; its config never changes.
//
//	created → running → exited; removed from any of them, by force from running
type container struct {
	id, name                   string
	sandbox                    *sandbox
	config                     *runtimeapi.ContainerConfig
	behaviour                  Behaviour
	state                      runtimeapi.ContainerState
	exitCode                   int32
	created, started, finished int64
	resources                  *runtimeapi.LinuxContainerResources
	timer                      clock.Timer   // of its own end; may be nil
	ended                      chan struct{} // closed when it has ended
}

// CreateContainer makes a container from a present image.
func (r *Runtime) CreateContainer(ctx context.Context,
	request *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	config := request.GetConfig()
	if err := r.take(ctx, r.Create); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[request.GetPodSandboxId()]
	if s == nil || !s.ready {
		return nil, status.Errorf(codes.Unknown, "sandbox %q is not running", request.GetPodSandboxId())
	}
	if r.image(config.GetImage().GetImage()) == nil {
		return nil, status.Errorf(codes.NotFound, "failed to resolve image %q: not found", config.GetImage().GetImage())
	}
	name := fmt.Sprintf("%s_%s_%d", config.GetMetadata().GetName(), s.name, config.GetMetadata().GetAttempt())
	id, err := r.reserve(name)
	if err != nil {
		return nil, err
	}
	r.containers[id] = &container{
		id: id, name: name, sandbox: s, config: config, behaviour: r.Behave(s.config, config), created: r.Clock.Now().UnixNano(),
		state: runtimeapi.ContainerState_CONTAINER_CREATED, resources: config.GetLinux().GetResources(), ended: make(chan struct{}),
	}
	r.tell(runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, id, s)
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, nil
}

// StartContainer starts a created container, which ends when its behaviour
// says so.
func (r *Runtime) StartContainer(ctx context.Context,
	request *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	if err := r.take(ctx, r.Start); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.find(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED {
		return nil, status.Errorf(codes.Unknown, "container %q is in %s state", c.id, c.state)
	}
	c.state, c.started = runtimeapi.ContainerState_CONTAINER_RUNNING, r.Clock.Now().UnixNano()
	r.tell(runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, c.id, c.sandbox)
	if c.behaviour.After > 0 {
		c.timer = r.Clock.AfterFunc(c.behaviour.After, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.end(c, c.behaviour.ExitCode)
		})
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

// StopContainer asks the container to end, and ends it after its grace period.
func (r *Runtime) StopContainer(ctx context.Context, request *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	r.mu.Lock()
	c := r.containers[request.GetContainerId()]
	if c == nil || c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		r.mu.Unlock()
		return &runtimeapi.StopContainerResponse{}, nil
	}
	wait, code := r.Stop, int32(0)
	if grace := time.Duration(request.GetTimeout()) * time.Second; c.behaviour.Stubborn || grace < wait {
		wait, code = grace, killed
	}
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // it may also end by itself
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := r.take(ctx, wait); err != nil {
		select {
		case <-c.ended:
			return &runtimeapi.StopContainerResponse{}, nil
		default:
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(c, code)
	return &runtimeapi.StopContainerResponse{}, nil
}

// end is the only way from running to exited. The caller holds r.mu.
func (r *Runtime) end(c *container, code int32) {
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.state, c.exitCode, c.finished = runtimeapi.ContainerState_CONTAINER_EXITED, code, r.Clock.Now().UnixNano()
	close(c.ended)
	r.tell(runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, c.id, c.sandbox)
}

// RemoveContainer removes a container, by force if it runs.
func (r *Runtime) RemoveContainer(_ context.Context,
	request *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[request.GetContainerId()]; c != nil {
		r.remove(c)
	}
	return &runtimeapi.RemoveContainerResponse{}, nil
}

func (r *Runtime) remove(c *container) {
	r.end(c, killed)
	delete(r.containers, c.id)
	delete(r.names, c.name)
	r.tell(runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, c.id, c.sandbox)
}

// find is a container by its id. The caller holds r.mu.
func (r *Runtime) find(id string) (*container, error) {
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "an error occurred when try to find container %q: not found", id)
}

func (r *Runtime) containersOf(sandboxID string) []*container {
	var all []*container
	for _, c := range r.containers {
		if c.sandbox.id == sandboxID {
			all = append(all, c)
		}
	}
	return all
}

// ListContainers lists the containers that match.
func (r *Runtime) ListContainers(_ context.Context, request *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	filter := request.GetFilter()
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := &runtimeapi.ListContainersResponse{}
	for _, c := range r.containers {
		if filter.GetId() != "" && filter.GetId() != c.id || filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != c.sandbox.id ||
			filter.GetState() != nil && filter.GetState().GetState() != c.state || !matches(filter.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		answer.Containers = append(answer.Containers, &runtimeapi.Container{
			Id:           c.id,
			PodSandboxId: c.sandbox.id,
			Metadata:     c.config.GetMetadata(),
			Image:        c.config.GetImage(),
			ImageRef:     reference(c.config.GetImage().GetImage()),
			State:        c.state,
			CreatedAt:    c.created,
			Labels:       c.config.GetLabels(),
			Annotations:  c.config.GetAnnotations(),
		})
	}
	return answer, nil
}

// ContainerStatus returns a container's status.
func (r *Runtime) ContainerStatus(_ context.Context,
	request *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.find(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatusResponse{Status: c.status()}, nil
}

func (c *container) status() *runtimeapi.ContainerStatus {
	result := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state, CreatedAt: c.created, StartedAt: c.started, FinishedAt: c.finished,
		ExitCode: c.exitCode, Image: c.config.GetImage(), ImageRef: reference(c.config.GetImage().GetImage()),
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(),
		Resources: &runtimeapi.ContainerResources{Linux: c.resources},
	}
	if c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
		result.Reason = "Completed"
		if c.exitCode != 0 {
			result.Reason = "Error"
		}
	}
	return result
}

// UpdateContainerResources takes note of what the container may have.
func (r *Runtime) UpdateContainerResources(_ context.Context,
	request *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.find(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	c.resources = request.GetLinux()
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// ReopenContainerLog has no log to open.
func (r *Runtime) ReopenContainerLog(context.Context,
	*runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	return &runtimeapi.ReopenContainerLogResponse{}, nil
}

// ExecSync reports success for every command in a running container.
func (r *Runtime) ExecSync(_ context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.find(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.Unknown, "container is in %s state", c.state)
	}
	return &runtimeapi.ExecSyncResponse{}, nil
}
