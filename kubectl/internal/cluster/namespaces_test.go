package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What was made below the directory before somebody else shares it, can be
// removed afterwards.
func TestNamespacesAreSharedBeforeTheyAreMade(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount")
	}
	dir := filepath.Join(t.TempDir(), "netns")
	t.Cleanup(func() {
		for unix.Unmount(dir, unix.MNT_DETACH) == nil {
		}
	})
	mounts := func() (count int) {
		t.Helper()
		data, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); fields[4] == dir {
				count++
				if !strings.Contains(line, " shared:") {
					t.Errorf("not shared: %s", line)
				}
			}
		}
		return count
	}
	if err := shareNamespaces(dir); err != nil || mounts() != 1 {
		t.Fatalf("%v, %d mounts", err, mounts())
	}
	name := filepath.Join(dir, "cni-1")
	if err := os.WriteFile(name, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("/proc/self/ns/net", name, "none", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := shareNamespaces(dir); err != nil || mounts() != 1 { // as ip-netns(8) does with each that it adds
		t.Fatalf("the second time: %v, %d mounts", err, mounts())
	}
	if err := unix.Unmount(name, unix.MNT_DETACH); err != nil {
		t.Error(err)
	}
	if err := os.Remove(name); err != nil {
		t.Errorf("the name of a namespace can't be removed: %v", err)
	}
}
