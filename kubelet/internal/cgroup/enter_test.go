package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProcessesInRoot(t *testing.T) {
	proc := t.TempDir()
	for pid, p := range map[string]struct {
		groups string
		thread bool // of the kernel
	}{
		"1":     {groups: "0::/\n"},
		"2":     {groups: "0::/\n", thread: true},
		"10":    {groups: "0::/\n"},
		"11":    {groups: "0::/kubepods/pod1\n"},
		"12":    {groups: "5:memory:/\n3:cpu,cpuacct:/\n1:name=systemd:/\n"},
		"13":    {groups: "5:memory:/\n1:name=systemd:/system.slice\n"},
		"14":    {groups: "5:memory:/system\n1:name=systemd:/\n"},
		"ended": {groups: "0::/\n"},
	} {
		dir := filepath.Join(proc, pid)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte(p.groups), 0o600); err != nil {
			t.Fatal(err)
		}
		if !p.thread {
			if err := os.Symlink("/bin/sh", filepath.Join(dir, "exe")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(proc, "20"), 0o755); err != nil { // it has just ended
		t.Fatal(err)
	}
	if got, err := processesInRoot(proc); err != nil || !slices.Equal(got, []int{10, 12}) {
		t.Errorf("%v %v", got, err)
	}
}
