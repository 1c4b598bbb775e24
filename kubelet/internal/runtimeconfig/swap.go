package runtimeconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// machine is what containers share: bytes of memory and of swap, and how the use of
// swap can be limited.
type machine struct {
	memory, swap int64
	unified      bool // cgroup v2
	limitsSwap   bool // the memory controller accounts for swap
}

// limitSwap keeps a container from swapping, or gives it its part of the machine's swap.
// Cgroup v1 can only do the former, and only for containers with a memory limit.
func (m *Maker) limitSwap(r *runtimeapi.LinuxContainerResources, pod *core.Pod, c *core.Container) {
	switch {
	case !m.limitsSwap:
	case !m.unified:
		r.MemorySwapLimitInBytes = r.MemoryLimitInBytes
	default:
		setUnified(r, "memory.swap.max", strconv.FormatInt(m.swapOf(pod, c), 10))
	}
}

// swapOf is a container's part of the machine's swap: the part of the machine's memory
// that it requests, if the node lets pods swap. Containers that want their memory to be
// real have none: those of guaranteed and critical pods, and those whose limit is their
// request; nor have those without a request (KEP-2400, LimitedSwap).
func (m *Maker) swapOf(pod *core.Pod, c *core.Container) int64 {
	request, limit := c.Resources.Requests.Memory(), c.Resources.Limits.Memory()
	if !m.LimitedSwap || cgroup.QOSClass(pod) != corev1.PodQOSBurstable || podmanager.IsCritical(pod) || request.Cmp(*limit) == 0 {
		return 0
	}
	if request.Value() > m.memory {
		return 0
	}
	return int64(float64(request.Value()) / float64(m.memory) * float64(m.swap))
}

func thisMachine() (machine, error) {
	m := machine{unified: cgroups.IsCgroup2UnifiedMode()}
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, fmt.Errorf("learning how much memory the machine has: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "MemTotal:":
			m.memory = kib << 10
		case "SwapTotal:":
			m.swap = kib << 10
		}
	}
	if m.memory <= 0 {
		return m, fmt.Errorf("learning how much memory the machine has: no MemTotal in /proc/meminfo")
	}
	limits := "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"
	if m.unified {
		limits = "/sys/fs/cgroup/*/memory.swap.max" // not in the root
	}
	found, _ := filepath.Glob(limits)
	m.limitsSwap = len(found) > 0
	return m, nil
}
