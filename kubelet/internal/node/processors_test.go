package node

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

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
