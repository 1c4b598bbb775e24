package cgroup

import (
	"maps"
	"os"
	"strconv"
	"testing"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

func memoryWanted(request, limit string) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{}
	if request != "" {
		r.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(request)}
	}
	if limit != "" {
		r.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
	return r
}

// What is protected goes by the class, and where a container is slowed down by what it may use at most.
func TestMemoryQoSOfContainersAndPods(t *testing.T) {
	const mi, allocatable = 1 << 20, 1000 << 20
	whole := memoryWanted("64Mi", "256Mi")
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	paged := func(n int64) string { return text(n / int64(os.Getpagesize()) * int64(os.Getpagesize())) }
	both, slow, keep := MemoryQoS{0.9, true}, MemoryQoS{ThrottlingFactor: 0.9}, MemoryQoS{Tiered: true}
	for name, c := range map[string]struct {
		qos            MemoryQoS
		class          corev1.PodQOSClass
		container      corev1.ResourceRequirements
		pod            *corev1.ResourceRequirements
		min, low, high string // of the container
		podHigh        string // "" if it is not set
	}{
		"guaranteed":                     {both, corev1.PodQOSGuaranteed, memoryWanted("64Mi", "64Mi"), nil, text(64 * mi), "0", "max", ""},
		"burstable":                      {both, corev1.PodQOSBurstable, memoryWanted("32Mi", "128Mi"), nil, "0", text(32 * mi), paged(32*mi + 96*mi*9/10), ""},
		"without a limit":                {both, corev1.PodQOSBurstable, memoryWanted("100Mi", ""), nil, "0", text(100 * mi), text(910 * mi), ""},
		"without a request":              {both, corev1.PodQOSBurstable, memoryWanted("", "100Mi"), nil, "0", "0", text(90 * mi), ""},
		"best effort":                    {both, corev1.PodQOSBestEffort, memoryWanted("", ""), nil, "0", "0", text(900 * mi), ""},
		"all of it":                      {both, corev1.PodQOSBurstable, memoryWanted("64Mi", "64Mi"), nil, "0", text(64 * mi), "max", ""},
		"more than the node has":         {both, corev1.PodQOSBurstable, memoryWanted("2000Mi", ""), nil, "0", text(2000 * mi), "max", ""},
		"only slowed down":               {slow, corev1.PodQOSGuaranteed, memoryWanted("", "100Mi"), nil, "0", "0", text(90 * mi), ""},
		"only protected":                 {keep, corev1.PodQOSBurstable, memoryWanted("32Mi", "128Mi"), nil, "0", text(32 * mi), "max", ""},
		"a limit of the pod":             {both, corev1.PodQOSBurstable, memoryWanted("32Mi", ""), &whole, "0", text(32 * mi), "max", paged(64*mi + 192*mi*9/10)},
		"a limit of the pod and its own": {both, corev1.PodQOSBurstable, memoryWanted("", "100Mi"), &whole, "0", "0", text(90 * mi), paged(64*mi + 192*mi*9/10)},
	} {
		pod := &core.Pod{Spec: core.PodSpec{Resources: c.pod, Containers: []core.Container{{Resources: c.container}}}}
		pod.Status.QOSClass = c.class
		want := map[string]string{memoryMin: c.min, memoryLow: c.low, memoryHigh: c.high}
		if got := c.qos.Container(pod, &pod.Spec.Containers[0], allocatable); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if got := c.qos.pod(pod, 64*mi)[memoryHigh]; got != c.podHigh {
			t.Errorf("%s: the pod's is %q, want %q", name, got, c.podHigh)
		}
	}
	if pod := (&core.Pod{}); (MemoryQoS{}).Container(pod, &core.Container{}, 1) != nil || (MemoryQoS{}).pod(pod, 1) != nil {
		t.Error("unasked, something is set")
	}
}

// The groups above the pods protect what all of them request, as long as they are there, also after a restart.
func TestGroupsAboveProtectWhatPodsRequest(t *testing.T) {
	if !cgroups.IsCgroup2UnifiedMode() {
		t.Skip("skipped: memory is protected with cgroup v2 only (TestUnifiedGroups runs on such a machine)")
	}
	m := newManager(t, Options{PerQOS: true, MemoryQoS: MemoryQoS{Tiered: true}})
	const mi = 1 << 20
	for uid, class := range map[string]corev1.PodQOSClass{"g": corev1.PodQOSGuaranteed, "b": corev1.PodQOSBurstable} {
		pod := &core.Pod{Spec: core.PodSpec{Containers: []core.Container{{Resources: memoryWanted("8Mi", "16Mi")}}}}
		pod.UID, pod.Status.QOSClass = types.UID(uid), class
		if err := m.Create(pod); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(when string, guaranteed, burstable int64) {
		t.Helper()
		above, err := m.protects(podsGroup)
		if want := (protection{guaranteed + burstable, burstable}); err != nil || above != want {
			t.Errorf("%s: %+v above all, want %+v, error %v", when, above, want, err)
		}
		if g, b := m.ProtectedMemory(); g != guaranteed || b != burstable {
			t.Errorf("%s: %d and %d are protected", when, g, b)
		}
	}
	holds("two pods", 8*mi, 8*mi)
	again, err := New(m.Options)
	if err != nil {
		t.Fatal(err)
	}
	m = again
	holds("after a restart", 8*mi, 8*mi)
	if err := m.Destroy("g", corev1.PodQOSGuaranteed); err != nil {
		t.Fatal(err)
	}
	holds("without the guaranteed one", 0, 8*mi)
	o := m.Options
	o.MemoryQoS = MemoryQoS{}
	if m, err = New(o); err != nil {
		t.Fatal(err)
	}
	holds("turned off", 0, 0)
	if err := m.Destroy("b", corev1.PodQOSBurstable); err != nil {
		t.Error(err)
	}
}
