package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// More is reserved than pods leave: the kubelet starts all the same.
func TestPodsThatUseTooMuchAreBoundLater(t *testing.T) {
	m := newManager(t, Options{Allocatable: list("1", "64Mi")})
	pod := podOf("large", corev1.ResourceRequirements{Requests: list("1", "")})
	if err := m.Create(pod); err != nil {
		t.Fatal(err)
	}
	useMemory(t, m, pod)
	m, err := New(Options{Root: m.Root, PerQOS: true, Allocatable: list("1", "16Mi")})
	if err != nil {
		t.Fatal(err)
	}
	swaps, _ := os.ReadFile("/proc/swaps") // a line for the head
	err = m.BoundPods()
	switch {
	case cgroups.IsCgroup2UnifiedMode(), strings.Count(string(swaps), "\n") > 1:
		t.Log("the kernel ends or swaps those who use too much here, and the bound need not wait")
	case err == nil:
		t.Error("pods that use twice as much have their bound")
	}
	if err := m.Destroy(pod.UID, QOSClass(pod)); err != nil {
		t.Fatal(err)
	}
	if err := m.BoundPods(); err != nil {
		t.Error(err)
	}
	if got := value(t, m.Root+"/kubepods", "memory/memory.limit_in_bytes", "memory.max"); got != "16777216" {
		t.Errorf("all pods may use %s", got)
	}
}

func TestDaemonsAreBound(t *testing.T) {
	m := newManager(t, Options{})
	group := m.Root + "/daemons"
	reserved := list("500m", "64Mi")
	reserved[Processes] = resource.MustParse("77")
	if err := m.BoundDaemons(group, reserved, false); err == nil || !strings.Contains(err.Error(), "cgroup "+group+" does not exist") {
		t.Errorf("without such a group: %v", err)
	}
	hierarchies := []string{"cpu", "memory", "pids"} // those of other controllers don't matter
	if cgroups.IsCgroup2UnifiedMode() {
		hierarchies = []string{""}
	}
	for _, hierarchy := range hierarchies {
		above := filepath.Join("/sys/fs/cgroup", hierarchy, m.Root)
		if err := os.Mkdir(filepath.Join(above, "daemons"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	has := func(when, file, v1, v2file, v2 string) {
		t.Helper()
		want := v1
		if cgroups.IsCgroup2UnifiedMode() {
			want = v2
		}
		if got := value(t, group, file, v2file); got != want {
			t.Errorf("%s: %s is %s, want %s", when, file, got, want)
		}
	}
	if err := m.BoundDaemons(group, reserved, true); err != nil {
		t.Fatal(err)
	}
	has("cpu only", "cpu/cpu.shares", "512", "cpu.weight", "59")
	has("cpu only", "memory/memory.limit_in_bytes", "9223372036854771712", "memory.max", "max")
	has("cpu only", "pids/pids.max", "max", "pids.max", "max")
	if err := m.BoundDaemons(group, reserved, false); err != nil {
		t.Fatal(err)
	}
	has("all", "memory/memory.limit_in_bytes", "67108864", "memory.max", "67108864")
	has("all", "pids/pids.max", "77", "pids.max", "77")
}

// The kubelet may be among the daemons that it bounds, and would not come to thaw itself.
func TestNobodyIsFrozenToBeBound(t *testing.T) {
	if bounds := boundsOf(list("1", "1Gi"), false); !bounds.SkipDevices || !bounds.SkipFreezeOnSet {
		t.Errorf("%+v", bounds)
	}
}
