package cri

import (
	"context"
	"encoding/json"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Version returns the runtime's name and version.
func (c *Client) Version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	return call(ctx, c.timeout, "Version", "", c.runtime.Version, &runtimeapi.VersionRequest{Version: "0.1.0"})
}

// Status tells whether the runtime and its network are ready, and which
// runtime handlers there are.
func (c *Client) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	return call(ctx, c.timeout, "Status", "", c.runtime.Status, &runtimeapi.StatusRequest{Verbose: verbose})
}

// RuntimeConfig returns the runtime's cgroup driver. Runtimes before 1.28 lack it.
func (c *Client) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return call(ctx, c.timeout, "RuntimeConfig", "", c.runtime.RuntimeConfig, &runtimeapi.RuntimeConfigRequest{})
}

// UpdateRuntimeConfig reports the node's pod CIDRs to the runtime, separated by
// commas. A runtime that generates its CNI configuration from a template
// inserts them.
func (c *Client) UpdateRuntimeConfig(ctx context.Context, podCIDRs string) error {
	_, err := call(ctx, c.timeout, "UpdateRuntimeConfig", "", c.runtime.UpdateRuntimeConfig, &runtimeapi.UpdateRuntimeConfigRequest{
		RuntimeConfig: &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: podCIDRs}},
	})
	return err
}

// RunPodSandbox creates and starts a sandbox, its network included, and
// returns its id. It gets twice the time of other calls, as upstream gives it.
func (c *Client) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	answer, err := call(ctx, 2*c.timeout, "RunPodSandbox", config.GetMetadata().GetUid(), c.runtime.RunPodSandbox,
		&runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	return answer.GetPodSandboxId(), err
}

// StopPodSandbox stops what runs in the sandbox and takes its network down. It
// is no error if it is stopped already.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	_, err := call(ctx, c.timeout, "StopPodSandbox", id, c.runtime.StopPodSandbox, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	return err
}

// RemovePodSandbox removes the sandbox and every container in it, by force. It
// is no error if it is gone already.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	_, err := call(ctx, c.timeout, "RemovePodSandbox", id, c.runtime.RemovePodSandbox, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}

// PodSandboxStatus returns a sandbox's state, attempt and addresses.
func (c *Client) PodSandboxStatus(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	answer, err := call(ctx, c.timeout, "PodSandboxStatus", id, c.runtime.PodSandboxStatus,
		&runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	return answer.GetStatus(), err
}

// SandboxImage is the image that a sandbox was made from; "" if the runtime does not report it.
// The API has no field for it, but both containerd and CRI-O include it in their verbose
// information.
func (c *Client) SandboxImage(ctx context.Context, id string) (string, error) {
	answer, err := call(ctx, c.timeout, "PodSandboxStatus", id, c.runtime.PodSandboxStatus,
		&runtimeapi.PodSandboxStatusRequest{PodSandboxId: id, Verbose: true})
	if err != nil {
		return "", err
	}
	var info struct {
		Image string `json:"image"`
	}
	if json.Unmarshal([]byte(answer.GetInfo()["info"]), &info) != nil {
		return "", nil // another runtime's
	}
	return info.Image, nil
}

// ListPodSandbox lists the sandboxes that match filter; nil lists all.
func (c *Client) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	answer, err := call(ctx, c.timeout, "ListPodSandbox", "", c.runtime.ListPodSandbox, &runtimeapi.ListPodSandboxRequest{Filter: filter})
	return answer.GetItems(), err
}

// ListPodSandboxStats returns what the sandboxes that match filter use.
func (c *Client) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	answer, err := call(ctx, c.timeout, "ListPodSandboxStats", "", c.runtime.ListPodSandboxStats,
		&runtimeapi.ListPodSandboxStatsRequest{Filter: filter})
	return answer.GetStats(), err
}

// Events is the runtime's stream of lifecycle events, open until ctx ends or
// the runtime goes away. For a runtime without one (containerd before 1.7)
// Recv fails with an error for which IsUnimplemented holds.
func (c *Client) Events(ctx context.Context) (runtimeapi.RuntimeService_GetContainerEventsClient, error) {
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return nil, &Error{Verb: "GetContainerEvents", Err: bounded(err)}
	}
	return stream, nil
}
