package bench_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"kctl/test/harness"
)

// BenchmarkIdle reports what the programs of an idle cluster weigh: memory in
// use, and the size of the binary.
func BenchmarkIdle(b *testing.B) {
	c := harness.Start(b, harness.Options{})
	for b.Loop() {
		for _, program := range []string{"apiserver", "scheduler", "kubelet"} {
			b.ReportMetric(float64(resident(b, c.PID(program)))/(1<<20), "MiB-"+program)
			info, err := os.Stat(c.Bin(program))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/(1<<20), "MiB-binary-"+program)
		}
		info, err := os.Stat(c.Bin("kctl"))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/(1<<20), "MiB-binary-kctl")
	}
	b.ReportMetric(0, "ns/op")
}

func resident(b testing.TB, pid int) int64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	b.Fatalf("process %d has no VmRSS", pid)
	return 0
}
