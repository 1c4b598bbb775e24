package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer creates a container in a sandbox and returns its id.
func (c *Client) CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig,
	sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	answer, err := call(ctx, c.timeout, "CreateContainer", config.GetMetadata().GetName(), c.runtime.CreateContainer,
		&runtimeapi.CreateContainerRequest{PodSandboxId: sandboxID, Config: config, SandboxConfig: sandbox})
	return answer.GetContainerId(), err
}

// StartContainer starts a created container.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	_, err := call(ctx, c.timeout, "StartContainer", id, c.runtime.StartContainer, &runtimeapi.StartContainerRequest{ContainerId: id})
	return err
}

// StopContainer asks a container to end, kills it after grace, and returns when
// it has ended. It is no error if it has already. The call may take the grace
// period more than others.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	_, err := call(ctx, grace+c.timeout, "StopContainer", id, c.runtime.StopContainer,
		&runtimeapi.StopContainerRequest{ContainerId: id, Timeout: int64((grace + time.Second - 1) / time.Second)})
	return err
}

// RemoveContainer removes a container, by force if it runs. It is no error if
// it is gone already.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	_, err := call(ctx, c.timeout, "RemoveContainer", id, c.runtime.RemoveContainer, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return err
}

// ListContainers lists the containers that match filter, dead ones too; nil
// lists all.
func (c *Client) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	answer, err := call(ctx, c.timeout, "ListContainers", "", c.runtime.ListContainers, &runtimeapi.ListContainersRequest{Filter: filter})
	return answer.GetContainers(), err
}

// ContainerStatus returns a container's state, times, exit code and image.
func (c *Client) ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	answer, err := call(ctx, c.timeout, "ContainerStatus", id, c.runtime.ContainerStatus, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	return answer.GetStatus(), err
}

// ContainerProcess is the process id of a running container on the machine; 0
// if the runtime does not report it. The API has no field for it, but both
// containerd and CRI-O include it in their verbose information.
func (c *Client) ContainerProcess(ctx context.Context, id string) (int, error) {
	answer, err := call(ctx, c.timeout, "ContainerStatus", id, c.runtime.ContainerStatus,
		&runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil || answer.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return 0, err
	}
	var info struct {
		PID int `json:"pid"`
	}
	if json.Unmarshal([]byte(answer.GetInfo()["info"]), &info) != nil {
		return 0, nil // another runtime's
	}
	return info.PID, nil
}

// UpdateContainerResources changes a running container's limits in place.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.LinuxContainerResources) error {
	_, err := call(ctx, c.timeout, "UpdateContainerResources", id, c.runtime.UpdateContainerResources,
		&runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: resources})
	return err
}

// ReopenContainerLog makes the runtime write to a new log file after the old
// one was moved away.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	_, err := call(ctx, c.timeout, "ReopenContainerLog", id, c.runtime.ReopenContainerLog,
		&runtimeapi.ReopenContainerLogRequest{ContainerId: id})
	return err
}

// CheckpointContainer makes the runtime write a running container's state to the
// archive at path. It may take up to timeout; zero means an ordinary call's.
func (c *Client) CheckpointContainer(ctx context.Context, id, path string, timeout time.Duration) error {
	_, err := call(ctx, cmp.Or(timeout, c.timeout), "CheckpointContainer", id, c.runtime.CheckpointContainer,
		&runtimeapi.CheckpointContainerRequest{ContainerId: id, Location: path, Timeout: int64(timeout / time.Second)})
	return err
}

// ContainerStats returns what one container uses.
func (c *Client) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	answer, err := call(ctx, c.timeout, "ContainerStats", id, c.runtime.ContainerStats, &runtimeapi.ContainerStatsRequest{ContainerId: id})
	return answer.GetStats(), err
}

// ListContainerStats returns what the containers that match filter use.
func (c *Client) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	answer, err := call(ctx, c.timeout, "ListContainerStats", "", c.runtime.ListContainerStats,
		&runtimeapi.ListContainerStatsRequest{Filter: filter})
	return answer.GetStats(), err
}

// Exec prepares a command with streams and returns the URL to connect to.
func (c *Client) Exec(ctx context.Context, request *runtimeapi.ExecRequest) (string, error) {
	answer, err := call(ctx, c.timeout, "Exec", request.GetContainerId(), c.runtime.Exec, request)
	return answer.GetUrl(), err
}

// Attach prepares streams to a container's main process and returns the URL to
// connect to.
func (c *Client) Attach(ctx context.Context, request *runtimeapi.AttachRequest) (string, error) {
	answer, err := call(ctx, c.timeout, "Attach", request.GetContainerId(), c.runtime.Attach, request)
	return answer.GetUrl(), err
}

// PortForward prepares streams to ports of a sandbox and returns the URL to
// connect to.
func (c *Client) PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (string, error) {
	answer, err := call(ctx, c.timeout, "PortForward", request.GetPodSandboxId(), c.runtime.PortForward, request)
	return answer.GetUrl(), err
}
