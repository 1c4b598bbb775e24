package cgroup

import (
	"os/exec"
	"slices"
	"strings"
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
		u, err := m.ContainerDetails(pod, "0123abcd")
		if err != nil {
			t.Fatal(err)
		}
		if u.Tasks != 1 || !slices.Equal(u.Processes, []int{process.Process.Pid}) || u.CPU.Throttled > u.CPU.Periods || u.CPU.Quota != 1000 ||
			u.CPU.Period != Period || u.CPU.Shares == 0 {
			t.Fatalf("%+v", u)
		}
		if u.CPU.Throttled > 1 && u.CPU.ThrottledTime > 0 && u.CPU.User+u.CPU.System > 0 && u.Usage.CPU > 0 && u.Usage.Memory > 0 {
			if want := m.Parent(pod) + "/crio-0123abcd"; u.Usage.Path != want {
				t.Errorf("it is at %q, want %q", u.Usage.Path, want)
			}
			break
		}
	}
	if pid, err := m.Process(pod, "0123abcd"); pid != process.Process.Pid || err != nil {
		t.Errorf("process %d, %v; want %d", pid, err, process.Process.Pid)
	}
	if of, err := m.PodDetails(pod); err != nil || of.Usage.Path != m.Parent(pod) || of.Usage.CPU == 0 || of.Tasks != 1 || len(of.Processes) != 0 {
		t.Errorf("of the pod: %+v, %v", of, err)
	}
	all, err := m.ClassDetails()
	var paths []string
	for _, of := range all {
		paths = append(paths, strings.TrimPrefix(of.Usage.Path, m.naming.name("")))
	}
	if want := []string{"/kubepods", "/kubepods/burstable", "/kubepods/besteffort"}; err != nil || !slices.Equal(paths, want) {
		t.Errorf("groups at %q, want %q: %v", paths, want, err)
	}
	if u, err := m.ContainerDetails(pod, "4567"); err == nil {
		t.Errorf("of a container that is not there: %+v", u)
	}
}
