package cgroup

import (
	"fmt"

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
			now, err := m.Usage(pod)
			if err != nil {
				return fmt.Errorf("control group of pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			if err := MemoryInUse("pod", limit, int64(now.WorkingSet)); err != nil {
				return err
			}
		}
	}
	return m.Create(pod)
}
