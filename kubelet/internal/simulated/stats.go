package simulated

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What every running container uses: a hundredth of a core, and memory.
const (
	coreShare = 100
	memory    = 16 << 20
)

// ListContainerStats says that all running containers that match use the same.
func (r *Runtime) ListContainerStats(_ context.Context,
	request *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	filter := request.GetFilter()
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := &runtimeapi.ListContainerStatsResponse{}
	for _, c := range r.containers {
		if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING || filter.GetId() != "" && filter.GetId() != c.id ||
			filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != c.sandbox.id || !matches(filter.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		answer.Stats = append(answer.Stats, r.stats(c))
	}
	return answer, nil
}

// ContainerStats says what one container uses.
func (r *Runtime) ContainerStats(_ context.Context, request *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.find(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatsResponse{Stats: r.stats(c)}, nil
}

func (r *Runtime) stats(c *container) *runtimeapi.ContainerStats {
	now := r.Clock.Now().UnixNano()
	until := now
	if c.finished != 0 {
		until = c.finished
	}
	cpu := uint64(0)
	if c.started != 0 {
		cpu = uint64(until-c.started) / coreShare
	}
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		},
		Cpu:    &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: cpu}},
		Memory: &runtimeapi.MemoryUsage{Timestamp: now, WorkingSetBytes: &runtimeapi.UInt64Value{Value: memory}},
	}
}
