package cgroup

import (
	"os/exec"
	"testing"

	"github.com/opencontainers/cgroups"
)

// A container that is limited to a hundredth of a core, in the group that a
// runtime made for it.
func TestWhatAContainersGroupTells(t *testing.T) {
	m := newManager(t, Options{})
	pod := podOf("throttled")
	if err := m.Create(pod); err != nil {
		t.Fatal(err)
	}
	child, err := m.group(podGroup(pod)+"/crio-0123abcd", &cgroups.Resources{CpuQuota: 1000, CpuPeriod: Period, SkipDevices: true})
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command("sh", "-c", `read go; exec sh -c "while :; do :; done"`) // memory counts for the group that a process is in when it is allocated
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Destroy(pod.UID, QOSClass(pod)) }()
	go func() { _ = process.Wait() }()
	if err := child.Apply(process.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := child.Set(&cgroups.Resources{CpuQuota: 1000, CpuPeriod: Period, SkipDevices: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	for t.Context().Err() == nil {
		u, err := m.ContainerUsage(pod, "0123abcd")
		if err != nil {
			t.Fatal(err)
		}
		if u.Tasks != 1 || u.Throttled > u.Periods {
			t.Fatalf("%+v", u)
		}
		if u.Throttled > 1 && u.ThrottledTime > 0 && u.User+u.System > 0 && u.Peak > 0 {
			break
		}
	}
	if pid, err := m.Process(pod, "0123abcd"); pid != process.Process.Pid || err != nil {
		t.Errorf("process %d, %v; want %d", pid, err, process.Process.Pid)
	}
	if u, err := m.ContainerUsage(pod, "4567"); err == nil {
		t.Errorf("of a container that is not there: %+v", u)
	}
}
