package cgroup

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

func TestValues(t *testing.T) {
	for milli, want := range map[int64]uint64{0: 2, 1: 2, 100: 102, 1000: 1024, 1_000_000: 262_144} {
		if got := Shares(milli); got != want {
			t.Errorf("Shares(%d) = %d, want %d", milli, got, want)
		}
	}
	for milli, want := range map[int64]int64{0: 0, 5: 1000, 500: 50_000, 2000: 200_000} {
		if got := Quota(milli, Period); got != want {
			t.Errorf("Quota(%d) = %d, want %d", milli, got, want)
		}
	}
	if got := Quota(500, 5000); got != 2500 {
		t.Errorf("half of 5 ms is %d", got)
	}
}

// list has cpu and memory, without those that are "".
func list(cpu, memory string) corev1.ResourceList {
	l := corev1.ResourceList{}
	if cpu != "" {
		l[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

func podOf(uid string, containers ...corev1.ResourceRequirements) *core.Pod {
	pod := &core.Pod{}
	pod.UID = types.UID(uid)
	for _, r := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, core.Container{Resources: r})
	}
	return pod
}

// A RuntimeClass's overhead is part of its pods' limits.
func TestOverheadCounts(t *testing.T) {
	pod := podOf("", corev1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("2", "2Gi")})
	pod.Spec.Overhead = list("250m", "64Mi")
	if cpu, memory := podLimits(pod); cpu != 2250 || memory != 2<<30+64<<20 {
		t.Errorf("limits %dm and %d bytes", cpu, memory)
	}
}

func TestQOSClass(t *testing.T) {
	full := corev1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("1", "1Gi")}
	whole := func(r corev1.ResourceRequirements) *core.Pod { p := podOf("", full); p.Spec.Resources = &r; return p }
	for name, c := range map[string]struct {
		pod  *core.Pod
		want corev1.PodQOSClass
	}{
		"nothing":           {podOf("", corev1.ResourceRequirements{}), corev1.PodQOSBestEffort},
		"zero":              {podOf("", corev1.ResourceRequirements{Requests: list("0", "")}), corev1.PodQOSBestEffort},
		"all":               {podOf("", full, full), corev1.PodQOSGuaranteed},
		"limits only":       {podOf("", corev1.ResourceRequirements{Limits: list("1", "1Gi")}), corev1.PodQOSGuaranteed},
		"one without":       {podOf("", full, corev1.ResourceRequirements{}), corev1.PodQOSBurstable},
		"no memory":         {podOf("", corev1.ResourceRequirements{Limits: list("1", "")}), corev1.PodQOSBurstable},
		"requests less":     {podOf("", corev1.ResourceRequirements{Requests: list("500m", "1Gi"), Limits: list("1", "1Gi")}), corev1.PodQOSBurstable},
		"requests zero":     {podOf("", corev1.ResourceRequirements{Requests: list("0", "0"), Limits: list("1", "1Gi")}), corev1.PodQOSBurstable},
		"whole pod empty":   {whole(corev1.ResourceRequirements{}), corev1.PodQOSGuaranteed},
		"whole pod zero":    {whole(corev1.ResourceRequirements{Requests: list("0", "")}), corev1.PodQOSBestEffort},
		"whole pod less":    {whole(corev1.ResourceRequirements{Requests: list("500m", "")}), corev1.PodQOSBurstable},
		"requests only":     {podOf("", corev1.ResourceRequirements{Requests: list("1", "1Gi")}), corev1.PodQOSBurstable},
		"recorded as other": {func() *core.Pod { p := podOf("", full); p.Status.QOSClass = corev1.PodQOSBurstable; return p }(), corev1.PodQOSBurstable},
	} {
		if got := QOSClass(c.pod); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestUnsupportedDriver(t *testing.T) {
	if _, err := New(Options{Driver: "openrc"}); err == nil || !strings.Contains(err.Error(), `"openrc" is not supported`) {
		t.Errorf("err = %v", err)
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		return
	}
	if _, err := New(Options{Driver: Systemd}); err == nil || !strings.Contains(err.Error(), "this machine does not run systemd") {
		t.Errorf("err = %v", err)
	}
}

func TestWithoutGroups(t *testing.T) {
	m, err := New(Options{Root: "/some/where"})
	if err != nil {
		t.Fatal(err)
	}
	pod := podOf("u")
	if m.Parent(pod) != "/some/where" || m.Create(pod) != nil || m.Destroy(pod.UID, "") != nil {
		t.Error("it does something")
	}
}

// exists tells whether a pod has its group in any hierarchy: the group's own Exists looks at that of
// the devices only, which is left to the container runtime.
func exists(m *Manager, pod *core.Pod) bool {
	dirs, err := m.dirs(podGroup(pod))
	return err == nil && slices.ContainsFunc(dirs, cgroups.PathExists)
}

// newManager uses a group of the test's own, and removes it.
func newManager(t *testing.T, o Options) *Manager {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups need root")
	}
	b := make([]byte, 4)
	_, _ = rand.Read(b)
	o.Root, o.PerQOS = "/cgrouptest-"+hex.EncodeToString(b), true
	t.Cleanup(func() {
		for _, dir := range dirs(o.Root) {
			if err := cgroups.RemovePath(dir); err != nil {
				t.Errorf("removing %s: %v", dir, err)
			}
		}
	})
	m, err := New(o)
	if err != nil {
		t.Skipf("control groups can not be made here: %v", err)
	}
	if err := m.BoundPods(); err != nil {
		t.Fatal(err)
	}
	return m
}

// dirs are a group's directories, one per hierarchy in cgroup v1.
func dirs(group string) []string {
	found, _ := filepath.Glob("/sys/fs/cgroup/*" + group)
	if cgroups.IsCgroup2UnifiedMode() {
		found, _ = filepath.Glob("/sys/fs/cgroup" + group)
	}
	return found
}

// value reads a file of a group under its cgroup v1 or v2 name.
func value(t *testing.T, group, v1, v2 string) string {
	t.Helper()
	path := filepath.Join("/sys/fs/cgroup", filepath.Dir(v1), group, filepath.Base(v1))
	if cgroups.IsCgroup2UnifiedMode() {
		path = filepath.Join("/sys/fs/cgroup", group, v2)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

func TestPodGroups(t *testing.T) {
	m := newManager(t, Options{PodPidsLimit: 99, Processes: 7777})
	small := corev1.ResourceRequirements{Requests: list("250m", "32Mi"), Limits: list("500m", "64Mi")}
	pods := map[string]*core.Pod{
		"/kubepods/burstable/podb":  podOf("b", small, small),
		"/kubepods/burstable/podh":  podOf("h", small, corev1.ResourceRequirements{}), // no pod-level limit
		"/kubepods/besteffort/pode": podOf("e", corev1.ResourceRequirements{}),
		"/kubepods/podg":            podOf("g", corev1.ResourceRequirements{Limits: list("1", "64Mi")}),
	}
	for group, pod := range pods {
		if got := m.Parent(pod); got != m.Root+group {
			t.Errorf("Parent = %s, want %s", got, m.Root+group)
		}
		if exists(m, pod) {
			t.Errorf("%s is there before it is made", group)
		}
		for range 2 { // the second time it exists already
			if err := m.Create(pod); err != nil {
				t.Fatal(err)
			}
		}
		if !exists(m, pod) {
			t.Errorf("%s is not there", group)
		}
	}
	for _, c := range []struct{ group, v1, want1, v2, want2 string }{
		{"/kubepods/burstable/podb", "cpu/cpu.shares", "512", "cpu.weight", "59"},
		{"/kubepods/burstable/podb", "cpu/cpu.cfs_quota_us", "100000", "cpu.max", "100000 100000"},
		{"/kubepods/burstable/podb", "memory/memory.limit_in_bytes", "134217728", "memory.max", "134217728"},
		{"/kubepods/burstable/podh", "cpu/cpu.shares", "256", "cpu.weight", "35"},
		{"/kubepods/burstable/podh", "cpu/cpu.cfs_quota_us", "-1", "cpu.max", "max 100000"},
		{"/kubepods/besteffort/pode", "cpu/cpu.shares", "2", "cpu.weight", "1"},
		{"/kubepods/besteffort", "cpu/cpu.shares", "2", "cpu.weight", "1"},
	} {
		file, want := c.v1, c.want1
		if cgroups.IsCgroup2UnifiedMode() {
			file, want = c.v2, c.want2
		}
		if got := value(t, m.Root+c.group, c.v1, c.v2); got != want {
			t.Errorf("%s of %s is %s, want %s", file, c.group, got, want)
		}
	}
	if got := value(t, m.Root+"/kubepods", "pids/pids.max", "pids.max"); got != "7777" {
		t.Errorf("pids.max of all pods is %s", got)
	}
	if got := value(t, m.Root+"/kubepods/podg", "pids/pids.max", "pids.max"); got != "99" {
		t.Errorf("pids.max is %s", got)
	}
	known, err := m.Pods()
	if err != nil || len(known) != 4 || known["b"] != corev1.PodQOSBurstable || known["e"] != corev1.PodQOSBestEffort || known["g"] != corev1.PodQOSGuaranteed {
		t.Errorf("Pods = %v, %v", known, err)
	}
	for uid, class := range known {
		if err := m.Destroy(uid, class); err != nil {
			t.Error(err)
		}
		if err := m.Destroy(uid, class); err != nil {
			t.Errorf("once it is gone: %v", err)
		}
	}
	if known, err := m.Pods(); err != nil || len(known) > 0 {
		t.Errorf("after Destroy: %v, %v", known, err)
	}
}

func TestDestroyEndsWhatIsLeft(t *testing.T) {
	m := newManager(t, Options{})
	pod := podOf("left")
	if err := m.Create(pod); err != nil {
		t.Fatal(err)
	}
	process := exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	child, err := m.group(podGroup(pod)+"/container", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Apply(process.Process.Pid); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- process.Wait() }() // or it stays in its group as a zombie
	if err := m.Destroy(pod.UID, QOSClass(pod)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended with %v", err)
	}
	if exists(m, pod) {
		t.Error("the group is still there")
	}
}

func BenchmarkCreate(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("control groups need root")
	}
	m, err := New(Options{Root: "/cgroupbench", PerQOS: true})
	if err != nil {
		b.Skip(err)
	}
	pod := podOf("bench", corev1.ResourceRequirements{Limits: list("1", "64Mi")})
	for b.Loop() {
		if err := m.Create(pod); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := m.Destroy(pod.UID, QOSClass(pod)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	for _, dir := range dirs(m.Root) {
		if err := cgroups.RemovePath(dir); err != nil {
			b.Error(err)
		}
	}
}

// The burstable QoS class has the CPU shares that its pods request together.
func TestBurstablePodsShare(t *testing.T) {
	m := newManager(t, Options{})
	pods := []*core.Pod{
		podOf("one", corev1.ResourceRequirements{Requests: list("500m", "")}),
		podOf("two", corev1.ResourceRequirements{Requests: list("1500m", "")}),
		podOf("best", corev1.ResourceRequirements{}),
		podOf("sure", corev1.ResourceRequirements{Requests: list("3", "1Mi"), Limits: list("3", "1Mi")}),
	}
	want := func(milli int64, when string) {
		t.Helper()
		shares := Shares(milli)
		expected := fmt.Sprint(shares)
		if cgroups.IsCgroup2UnifiedMode() {
			expected = fmt.Sprint(cgroups.ConvertCPUSharesToCgroupV2Value(shares))
		}
		if got := value(t, m.Root+"/kubepods/burstable", "cpu/cpu.shares", "cpu.weight"); got != expected {
			t.Errorf("%s: %s, want %s", when, got, expected)
		}
	}
	for _, pod := range pods {
		if err := m.Create(pod); err != nil {
			t.Fatal(err)
		}
	}
	want(2000, "two pods")
	pods[0].Spec.Containers[0].Resources.Requests = list("1", "")
	if err := m.Create(pods[0]); err != nil {
		t.Fatal(err)
	}
	want(2500, "one resized")
	for i, left := range []int64{1500, 0, 0, 0} {
		for range 2 { // the second call finds nothing
			if err := m.Destroy(pods[i].UID, QOSClass(pods[i])); err != nil {
				t.Fatal(err)
			}
		}
		want(left, "after the end of "+string(pods[i].UID))
	}
}

// A restarted kubelet sees its pods one by one. Meanwhile the class has its share for all of them, and
// not only for those that it has seen.
func TestBurstablePodsShareAfterARestart(t *testing.T) {
	before := newManager(t, Options{})
	one := podOf("one", corev1.ResourceRequirements{Requests: list("500m", "")})
	two := podOf("two", corev1.ResourceRequirements{Requests: list("1500m", "")})
	for _, pod := range []*core.Pod{one, two} {
		if err := before.Create(pod); err != nil {
			t.Fatal(err)
		}
	}
	m, err := New(Options{Root: before.Root, PerQOS: true})
	if err != nil {
		t.Fatal(err)
	}
	has := func(milli int64, when string) {
		t.Helper()
		g, err := m.group("kubepods/burstable", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := requestOf(sharesAt(g.Path("cpu"))); got < milli*9/10 || got > milli*11/10 { // weights of cgroup v2 are coarse
			t.Errorf("%s: as for %d thousandths of a core, want %d", when, got, milli)
		}
	}
	one.Spec.Containers[0].Resources.Requests = list("600m", "")
	if err := m.Create(one); err != nil {
		t.Fatal(err)
	}
	has(2100, "one seen")
	if err := m.Destroy(two.UID, QOSClass(two)); err != nil { // it is gone from the API
		t.Fatal(err)
	}
	has(600, "the other is gone")
	if err := m.Destroy(one.UID, QOSClass(one)); err != nil {
		t.Fatal(err)
	}
}

func TestSharesOfWeights(t *testing.T) {
	for _, milli := range []int64{2, 100, 500, 1500, 64_000} {
		if got := requestOf(Shares(milli)); got != milli {
			t.Errorf("the request of the share of %d is %d", milli, got)
		}
		weight := cgroups.ConvertCPUSharesToCgroupV2Value(Shares(milli))
		if least := leastShares(weight); least > Shares(milli) || cgroups.ConvertCPUSharesToCgroupV2Value(least) != weight {
			t.Errorf("weight %d, of %d shares, is that of %d", weight, Shares(milli), least)
		}
	}
	if leastShares(0) != 0 {
		t.Error("a group without a weight has shares")
	}
}
