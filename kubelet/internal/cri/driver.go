package cri

import (
	"context"
	"encoding/json"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CgroupDriver is how the runtime manages control groups, by the name in a
// KubeletConfiguration, systemd or cgroupfs; "" if it does not say.
func (c *Client) CgroupDriver(ctx context.Context) (string, error) {
	answer, err := c.RuntimeConfig(ctx)
	if IsUnimplemented(err) {
		return c.containerdDriver(ctx)
	}
	if err != nil || answer.GetLinux() == nil {
		return "", err
	}
	if answer.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD {
		return "systemd", nil
	}
	return "cgroupfs", nil
}

// containerdDriver is the driver of a containerd before 2.0, which reports it
// only as part of the configuration in its verbose status. It is the driver of
// the runtime for pods without a RuntimeClass.
func (c *Client) containerdDriver(ctx context.Context) (string, error) {
	status, err := c.Status(ctx, true)
	if err != nil {
		return "", err
	}
	var config struct {
		Containerd struct {
			DefaultRuntimeName string `json:"defaultRuntimeName"`
			Runtimes           map[string]struct {
				RuntimeType string `json:"runtimeType"`
				Options     struct{ SystemdCgroup bool }
			} `json:"runtimes"`
		} `json:"containerd"`
	}
	if json.Unmarshal([]byte(status.GetInfo()["config"]), &config) != nil {
		return "", nil // another runtime's: it has nothing to do with drivers
	}
	switch runtime := config.Containerd.Runtimes[config.Containerd.DefaultRuntimeName]; {
	case runtime.RuntimeType != "io.containerd.runc.v2":
		return "", nil // others have drivers of their own
	case runtime.Options.SystemdCgroup:
		return "systemd", nil
	}
	return "cgroupfs", nil
}
