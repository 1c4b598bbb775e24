package cgroup

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/proto/eventually"
)

// A node may keep limits of cpu over shorter times.
func TestPeriodOfLimits(t *testing.T) {
	m := newManager(t, Options{Allocatable: list("1", "1Gi"), CPUPeriod: 5000})
	if err := m.Create(podOf("g", corev1.ResourceRequirements{Limits: list("500m", "64Mi")})); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cpu/cpu.cfs_quota_us": "2500", "cpu/cpu.cfs_period_us": "5000"}
	for file, of := range want {
		if cgroups.IsCgroup2UnifiedMode() {
			of = "2500 5000"
		}
		if got := value(t, m.Root+"/kubepods/podg", file, "cpu.max"); got != of {
			t.Errorf("%s is %s, want %s", file, got, of)
		}
	}
	if err := m.Destroy("g", corev1.PodQOSGuaranteed); err != nil {
		t.Error(err)
	}
}

// A node may leave its pods without a bound, even if they had one.
func TestPodsMayBeUnbounded(t *testing.T) {
	m := newManager(t, Options{Processes: 7777, Allocatable: list("1", "1Gi")})
	m, err := New(Options{Root: m.Root, PerQOS: true, Processes: 7777, Allocatable: list("1", "1Gi"), PodsUnlimited: true, NoCPUQuota: true})
	if err == nil {
		err = m.BoundPods()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Create(podOf("g", corev1.ResourceRequirements{Limits: list("1", "64Mi")})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ group, v1, want1, v2, want2 string }{
		{"/kubepods", "memory/memory.limit_in_bytes", "9223372036854771712", "memory.max", "max"},
		{"/kubepods", "pids/pids.max", "max", "pids.max", "max"},
		{"/kubepods/podg", "cpu/cpu.cfs_quota_us", "-1", "cpu.max", "max 100000"},
		{"/kubepods/podg", "memory/memory.limit_in_bytes", "67108864", "memory.max", "67108864"},
	} {
		want := c.want1
		if cgroups.IsCgroup2UnifiedMode() {
			want = c.want2
		}
		if got := value(t, m.Root+c.group, c.v1, c.v2); got != want {
			t.Errorf("%s of %s is %s, want %s", c.v1, c.group, got, want)
		}
	}
	if err := m.Destroy("g", corev1.PodQOSGuaranteed); err != nil {
		t.Error(err)
	}
}

// useMemory has a process in the pod's group use 32 MiB, until the group is destroyed.
func useMemory(t *testing.T, m *Manager, pod *core.Pod) {
	t.Helper()
	user := exec.Command("sh", "-c", "read go; head -c 33554432 /dev/zero | tail -n 1 | sleep 1000")
	user.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := user.StdinPipe()
	if err == nil {
		err = user.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Destroy(pod.UID, QOSClass(pod))
		_ = user.Wait()
	})
	g, err := m.group(podGroup(pod), nil)
	if err == nil {
		err = g.Apply(user.Process.Pid)
	}
	if err == nil {
		_, err = in.Write([]byte("go\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for used := (Usage{}); used.WorkingSet < 32<<20 && t.Context().Err() == nil; { // tail keeps a line in memory until it has seen its end
		if used, err = m.Usage(pod); err != nil {
			t.Fatal(err)
		}
	}
}

// A running pod is resized, by pod-level resources or those of its containers:
// the group is never smaller than what is in it, and memory in use is not taken
// away.
func TestGroupsAreResized(t *testing.T) {
	m := newManager(t, Options{})
	sized := func(memory string) *core.Pod {
		pod := podOf("resized", corev1.ResourceRequirements{})
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: list("1", "1Mi"), Limits: list("1", memory)}
		pod.Status.QOSClass = corev1.PodQOSBurstable
		return pod
	}
	has := func(when string, want int64) {
		t.Helper()
		if got := value(t, m.Root+"/kubepods/burstable/podresized", "memory/memory.limit_in_bytes", "memory.max"); got != fmt.Sprint(want) {
			t.Errorf("%s: %s, want %d", when, got, want)
		}
	}
	small, large := sized("16Mi"), sized("64Mi")
	if err := m.Create(small); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		when string
		do   func(pod, before *core.Pod) error
		pod  *core.Pod
		was  *core.Pod
		want int64
	}{
		{"before it grows", m.RaiseLimits, large, small, 64 << 20}, {"grown", m.SetFinalLimits, large, small, 64 << 20},
		{"before it shrinks", m.RaiseLimits, small, large, 64 << 20}, {"shrunk", m.SetFinalLimits, small, large, 16 << 20},
		{"grown again", m.SetFinalLimits, large, small, 64 << 20},
	} {
		if err := step.do(step.pod, step.was); err != nil {
			t.Fatalf("%s: %v", step.when, err)
		}
		has(step.when, step.want)
	}

	useMemory(t, m, large)
	// The kernel adds up what is in memory.stat for the groups above every two seconds only.
	eventually.Holds(t, "the use of all pods", func() bool {
		all, err := m.UsageOfPods()
		return err == nil && all.WorkingSet >= 32<<20 && all.Memory >= all.WorkingSet && all.RSS > 0 && all.CPU > 0
	})
	if one, err := m.Usage(large); err != nil || one.Limit != 64<<20 {
		t.Errorf("the pod's limit is %d, %v", one.Limit, err)
	}
	err := m.SetFinalLimits(small, large)
	if err == nil || !strings.Contains(err.Error(), "memory limit (16777216) below current usage (") {
		t.Errorf("of what is used, it says %v", err)
	}
	has("while it is used", 64<<20)

	later, err := New(m.Options)
	if err != nil {
		t.Fatal(err)
	}
	if m.Unfinished(small) != nil || later.Unfinished(large) != nil {
		t.Error("a group that is as it should be is to be finished")
	}
	was := later.Unfinished(small)
	if was == nil {
		t.Fatal("a later kubelet does not see that the group is too large")
	}
	if err := later.RaiseLimits(small, was); err != nil {
		t.Fatal(err)
	}
	has("before a later kubelet has looked at its use", 64<<20)
	if err := later.SetFinalLimits(small, was); err == nil {
		t.Error("a later kubelet does not look at what is used")
	}
}
