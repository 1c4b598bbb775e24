package cgroup

import (
	"fmt"
	"os"
	"path"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
)

// Enter puts this process into a group, which is made if missing. If systemd, or
// whatever started the process, has put it there already, nothing changes.
func Enter(group string) error {
	group = path.Join("/", group)
	of, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		return fmt.Errorf("control groups of the kubelet: %w", err)
	}
	for _, hierarchy := range []string{"", "name=systemd", "memory"} { // cgroup v2's one, and those of v1 that tell
		if in, ok := of[hierarchy]; ok && in == group {
			return nil
		}
	}
	g, err := manager.New(&cgroups.Cgroup{Path: group, Resources: &cgroups.Resources{SkipDevices: true}})
	if err != nil {
		return fmt.Errorf("control group of the kubelet: %w", err)
	}
	if err := g.Apply(os.Getpid()); err != nil {
		return fmt.Errorf("moving the kubelet into its control group: %w", err)
	}
	return nil
}
