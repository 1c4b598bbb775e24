package bench_test

import (
	"testing"

	"kctl/test/harness"
)

// BenchmarkHollowNodes reports the memory that a hollow node costs: that of a
// process with a hundred of them, divided by a hundred.
func BenchmarkHollowNodes(b *testing.B) {
	const nodes = 100
	c := harness.Start(b, harness.Options{Without: []string{"kubelet", "containerd", "registry"}})
	pid := c.HollowNodes(b, nodes)
	for b.Loop() {
		b.ReportMetric(float64(memory(b, pid, "VmRSS"))/(1<<20)/nodes, "MiB/node")
		b.ReportMetric(float64(memory(b, c.PID("apiserver"), "VmRSS"))/(1<<20), "MiB-apiserver")
	}
	b.ReportMetric(0, "ns/op")
}
