package server

import (
	"github.com/opencontainers/cgroups"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"kctl/kubelet/internal/cgroup"
)

// psi is the summary's form. Its times are in the kernel's microseconds, as upstream's
// kubelet gives them, though its API speaks of nanoseconds.
func psi(p *cgroups.PSIStats) *stats.PSIStats {
	if p == nil {
		return nil
	}
	of := func(d cgroups.PSIData) stats.PSIData {
		return stats.PSIData{Total: d.Total, Avg10: d.Avg10, Avg60: d.Avg60, Avg300: d.Avg300}
	}
	return &stats.PSIStats{Full: of(p.Full), Some: of(p.Some)}
}

// addPressure adds the pressure of CPU and memory to their figures, and returns that
// of I/O; nil if unknown.
func addPressure(now metav1.Time, p cgroup.Pressure, cpu *stats.CPUStats, memory *stats.MemoryStats) *stats.IOStats {
	if cpu != nil {
		cpu.PSI = psi(p.CPU)
	}
	if memory != nil {
		memory.PSI = psi(p.Memory)
	}
	if p.IO == nil {
		return nil
	}
	return &stats.IOStats{Time: now, PSI: psi(p.IO)}
}

// addPressure adds cAdvisor's metrics for it; of writes the labels.
func (f samples) addPressure(p cgroup.Pressure, ms int64, of func(more ...string) string) {
	for what, waited := range map[string]*cgroups.PSIStats{"cpu": p.CPU, "memory": p.Memory, "io": p.IO} {
		if waited != nil {
			f.add("container_pressure_"+what+"_waiting_seconds_total", of(), seconds(waited.Some.Total*1000), ms)
			f.add("container_pressure_"+what+"_stalled_seconds_total", of(), seconds(waited.Full.Total*1000), ms)
		}
	}
}
