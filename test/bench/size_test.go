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
			b.ReportMetric(float64(memory(b, c.PID(program), "VmRSS"))/(1<<20), "MiB-"+program)
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

// memory is a line of a process's status, in bytes: VmRSS is what it has in
// memory, VmHWM the most that it had.
func memory(b testing.TB, pid int, name string) int64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		var kib int64
		if _, err := fmt.Sscanf(line, name+": %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	b.Fatalf("process %d has no %s", pid, name)
	return 0
}
