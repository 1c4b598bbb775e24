package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A kubelet that is pinned to one processor offers all of the machine's to pods. The test is its own
// child: how many processors a program has is found out when it starts.
func TestAPinnedKubeletOffersAllProcessors(t *testing.T) {
	const whole = "KCTL_TEST_CPUS"
	if want := os.Getenv(whole); want != "" {
		m, err := ReadMachine(t.TempDir())
		if got := fmt.Sprint(m.CPUs); err != nil || got != want || runtime.NumCPU() != 1 {
			t.Errorf("%s processors, %v; want %s, of which this process has one, not %d", got, err, want, runtime.NumCPU())
		}
		return
	}
	dir := t.TempDir()
	if got := onlineCPUs(dir); got != runtime.NumCPU() {
		t.Errorf("%d processors where the kernel says nothing, want this process's", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "online"), []byte("0-2,5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := onlineCPUs(dir); got != 4 {
		t.Errorf("%d processors of 0-2,5", got)
	}
	runtime.LockOSThread() // for ever: the thread ends with the test
	var one, may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if may.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", whole, onlineCPUs(cpuDir)))
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Two sockets of two cores of two threads, whose cores have the same numbers in both sockets.
func TestProcessorsAreCounted(t *testing.T) {
	dir := t.TempDir()
	for cpu := range 8 {
		topology := filepath.Join(dir, fmt.Sprint("cpu", cpu), "topology")
		if err := os.MkdirAll(topology, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, value := range map[string]int{"physical_package_id": cpu / 4, "core_id": cpu % 2} {
			if err := os.WriteFile(filepath.Join(topology, file), fmt.Appendln(nil, value), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "cpufreq"), 0o755); err != nil {
		t.Fatal(err)
	}
	if cores, sockets := processorsIn(dir); cores != 4 || sockets != 2 {
		t.Errorf("%d cores in %d sockets, not 4 in 2", cores, sockets)
	}
	if cores, sockets := processorsIn(t.TempDir()); cores != 0 || sockets != 0 {
		t.Errorf("%d cores in %d sockets where the kernel says nothing", cores, sockets)
	}
}
