package cgroup

import (
	"fmt"
	"strconv"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
)

// BoundPods gives the group of all pods its share and limits. With cgroup v1 it fails
// while pods use more memory than that, and may be called again later.
func (m *Manager) BoundPods() error {
	if !m.PerQOS {
		return nil
	}
	bounds := boundsOf(m.Allocatable, m.PodsUnlimited)
	if m.PodsUnlimited {
		bounds.Memory, bounds.PidsLimit = -1, new(int64(-1)) // and none that was before
	} else if most := m.Options.Processes; most > 0 {
		bounds.PidsLimit = &most
	}
	return m.create(podsGroup, bounds)
}

// BoundDaemons gives a group that others have made the share and the limits of what is
// reserved for the processes in it; only the share if it is to be compressible only. With ProtectDaemons
// and cgroup v2, reserved memory is not taken from them either. The group
// is a path below the root of all groups, or of systemd the path or name of a slice.
func (m *Manager) BoundDaemons(group string, reserved corev1.ResourceList, compressible bool) error {
	names, err := newNaming(m.Driver, group)
	if err != nil {
		return err
	}
	bounds := boundsOf(reserved, compressible)
	if processes, ok := reserved[Processes]; ok && !compressible {
		bounds.PidsLimit = new(processes.Value())
	}
	if bounds.Memory > 0 && m.ProtectDaemons && cgroups.IsCgroup2UnifiedMode() {
		bounds.Unified = map[string]string{memoryMin: strconv.FormatInt(bounds.Memory, 10)}
	}
	daemons, err := (&Manager{naming: names, mounts: m.mounts}).group("", bounds)
	if err != nil {
		return err
	}
	for controller, dir := range daemons.GetPaths() {
		if needed(controller, bounds) && !cgroups.PathExists(dir) {
			return fmt.Errorf("cgroup %s does not exist: %s was not found", group, dir)
		}
	}
	return daemons.Set(bounds)
}

// needed tells whether a controller of cgroup v1 keeps one of the bounds. Where v2 is
// mounted beside it, that hierarchy has no controllers, and here no name.
func needed(controller string, bounds *cgroups.Resources) bool {
	switch controller {
	case "":
		return cgroups.IsCgroup2UnifiedMode()
	case "cpu":
		return bounds.CpuShares > 0
	case "memory":
		return bounds.Memory > 0
	case "pids":
		return bounds.PidsLimit != nil
	}
	return false
}

// boundsOf touches no devices, for which a slice that has rules for some would be frozen meanwhile,
// with cgroup v1: this kubelet may be in it.
func boundsOf(amounts corev1.ResourceList, compressible bool) *cgroups.Resources {
	bounds := &cgroups.Resources{SkipDevices: true, SkipFreezeOnSet: true}
	if cpu, ok := amounts[corev1.ResourceCPU]; ok {
		setShares(bounds, Shares(cpu.MilliValue()))
	}
	if memory, ok := amounts[corev1.ResourceMemory]; ok && !compressible {
		bounds.Memory = memory.Value()
	}
	return bounds
}
