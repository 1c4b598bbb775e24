package cgroup

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fscommon"

	"kctl/proto/core"
)

// MemoryInUse refuses a limit of memory below what is used, both in bytes: the kernel
// would refuse it too (cgroup v1), or end processes for it (cgroup v2). whose is what the
// limit is of, in the words that people read.
func MemoryInUse(whose string, limit, used int64) error {
	if used > limit {
		return fmt.Errorf("cannot decrease memory limits: attempting to set %s memory limit (%d) below current usage (%d)", whose, limit, used)
	}
	return nil
}

// Settle gives the pod's group what the pod is to have, once its containers have
// it: after Widen. A memory limit that was higher before, or was none, has to leave
// room for what the pod uses by now.
func (m *Manager) Settle(pod, before *core.Pod) error {
	if m.PerQOS {
		_, limit := podLimits(pod)
		if _, was := podLimits(before); limit > 0 && (was == 0 || limit < was) {
			used, err := m.memoryUsed(podGroup(pod))
			if err != nil {
				return fmt.Errorf("control group of pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			if err := MemoryInUse("pod", limit, used); err != nil {
				return err
			}
		}
	}
	return m.Create(pod)
}

// MemoryUsed is what all pods together have of memory, in bytes, in the same way.
func (m *Manager) MemoryUsed() (int64, error) { return m.memoryUsed(podsGroup) }

// memoryUsed is what a group has of memory, in bytes, without what the kernel takes
// back first: files that nobody has read lately.
func (m *Manager) memoryUsed(name string) (int64, error) {
	file, inactive := "memory.usage_in_bytes", "total_inactive_file"
	if cgroups.IsCgroup2UnifiedMode() {
		file, inactive = "memory.current", "inactive_file"
	}
	g, err := m.group(name, nil)
	if err != nil {
		return 0, err
	}
	dir := g.Path("memory")
	text, err := cgroups.ReadFile(dir, file)
	if err != nil {
		return 0, fmt.Errorf("asking how much memory is used: %w", err)
	}
	used, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("asking how much memory is used: %s: %w", file, err)
	}
	files, err := fscommon.GetValueByKey(dir, "memory.stat", inactive)
	if err != nil {
		return 0, fmt.Errorf("asking how much memory is used: %w", err)
	}
	return max(0, used-int64(files)), nil
}
