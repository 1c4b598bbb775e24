package bench_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"kctl/test/harness"
)

// calm is how long an idle cluster is watched.
const calm = 10 * time.Second

// BenchmarkIdle reports what the programs of an idle cluster cost: memory, the
// size of the binary, and the share of a core that they use; then the same for
// the kubelet with 30 pods that only wait.
func BenchmarkIdle(b *testing.B) {
	c := harness.Start(b, harness.Options{})
	pods := follow(b, c)
	idle := account{b: b, of: map[string]int{}}
	for _, program := range []string{"apiserver", "scheduler", "kubelet"} {
		idle.of[program] = c.PID(program)
	}
	for b.Loop() {
		idle.rest("")
		for program, pid := range idle.of {
			b.ReportMetric(float64(memory(b, pid, "VmRSS"))/(1<<20), "MiB-"+program)
		}
		var names []string
		for i := range crowd {
			names = append(names, fmt.Sprintf("idle-%d-%d", b.N, i))
			pods.create(names[i])
		}
		pods.await(harness.Running, names...)
		idle.rest("-30-pods")
		b.ReportMetric(float64(memory(b, c.PID("kubelet"), "VmRSS"))/(1<<20), "MiB-kubelet-30-pods")
	}
	for _, program := range []string{"apiserver", "scheduler", "kubelet", "kctl"} {
		info, err := os.Stat(c.Bin(program))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/(1<<20), "MiB-binary-"+program)
	}
	b.ReportMetric(0, "ns/op")
}

// rest reports which share of a core each process uses when nobody asks it
// anything, once earlier work is done.
func (a *account) rest(when string) {
	time.Sleep(calm)
	a.begin()
	time.Sleep(calm)
	for name, pid := range a.of {
		a.b.ReportMetric(100*(cpu(a.b, pid)-a.before[name]).Seconds()/calm.Seconds(), "%-core-"+name+when)
	}
}

// memory is a line of a process's status, in bytes: VmRSS is its memory now,
// VmHWM its peak.
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
