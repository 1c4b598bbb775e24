package runtimeconfig

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

func TestSwap(t *testing.T) {
	of := func(class corev1.PodQOSClass, requests, limits corev1.ResourceList) *core.Pod {
		pod := &core.Pod{Spec: core.PodSpec{Containers: []core.Container{{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}}}
		pod.Status.QOSClass = class
		return pod
	}
	burstable := of(corev1.PodQOSBurstable, quantities("1", "2Gi"), quantities("1", "4Gi"))
	critical := of(corev1.PodQOSBurstable, quantities("1", "2Gi"), quantities("1", "4Gi"))
	critical.Spec.Priority = new(int32(2_000_001_000))
	m := &Maker{machine: machine{memory: 8 << 30, swap: 1 << 30, unified: true, limitsSwap: true}, Options: Options{LimitedSwap: true}}
	for name, c := range map[string]struct {
		pod  *core.Pod
		want string
	}{
		"a quarter of the memory":   {burstable, "268435456"},
		"no limit":                  {of(corev1.PodQOSBurstable, quantities("1", "2Gi"), nil), "268435456"},
		"critical":                  {critical, "0"},
		"all of it guaranteed":      {of(corev1.PodQOSBurstable, quantities("1", "2Gi"), quantities("2", "2Gi")), "0"},
		"guaranteed":                {of(corev1.PodQOSGuaranteed, quantities("1", "2Gi"), quantities("1", "2Gi")), "0"},
		"best effort":               {of(corev1.PodQOSBestEffort, nil, nil), "0"},
		"no request":                {of(corev1.PodQOSBurstable, nil, quantities("1", "2Gi")), "0"},
		"more than the machine has": {of(corev1.PodQOSBurstable, quantities("1", "9Gi"), nil), "0"},
	} {
		r := m.Resources(c.pod, &c.pod.Spec.Containers[0])
		if got := r.Unified["memory.swap.max"]; got != c.want || r.MemorySwapLimitInBytes != 0 {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}

	// Nobody swaps, a container without a memory limit neither.
	m.LimitedSwap, m.OOMKillGroup = false, true
	for _, pod := range []*core.Pod{burstable, of(corev1.PodQOSBestEffort, nil, nil)} {
		if r := m.Resources(pod, &pod.Spec.Containers[0]); r.Unified["memory.swap.max"] != "0" || r.Unified["memory.oom.group"] != "1" {
			t.Errorf("without swap: %v", r)
		}
	}
	m.unified, m.OOMKillGroup = false, false
	if r := m.Resources(burstable, &burstable.Spec.Containers[0]); r.MemorySwapLimitInBytes != 4<<30 || r.Unified != nil {
		t.Errorf("with cgroup v1: %v", r)
	}
	m.limitsSwap = false
	if r := m.Resources(burstable, &burstable.Spec.Containers[0]); r.MemorySwapLimitInBytes != 0 || r.Unified != nil {
		t.Errorf("without a controller of swap: %v", r)
	}
}

func TestThisMachine(t *testing.T) {
	if m, err := thisMachine(); err != nil || m.memory < 1<<26 || m.swap < 0 {
		t.Errorf("%+v, %v", m, err)
	}
}
