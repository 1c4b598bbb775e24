package eviction

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

func TestPodsAboveTheirLimits(t *testing.T) {
	withVolume := func(name, size string) *core.Pod {
		pod := newPod(name, 0, "", "")
		limit := resource.MustParse(size)
		pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
		return pod
	}
	n := newNode(t, Settings{})
	n.add(withVolume("volume", "1Mi"), &Usage{Volumes: map[string]Volume{"scratch": {Bytes: 1<<20 + 1}}})
	n.add(withVolume("fits", "1Mi"), &Usage{Volumes: map[string]Volume{"scratch": {Bytes: 1 << 20}}})
	n.add(newPod("pod", 0, "", "1Mi"), &Usage{Disk: 1<<20 + 1})
	n.add(newPod("container", 0, "", "1Mi"), &Usage{Disk: 1, Containers: map[string]Share{"main": {Disk: 1<<20 + 1}}})
	n.add(newPod("unlimited", 0, "", ""), &Usage{Disk: 1 << 40})
	zero := newPod("zero", 0, "", "0")
	zero.Spec.Containers = append(zero.Spec.Containers, newPod("", 0, "", "1Mi").Spec.Containers[0])
	zero.Spec.Containers[1].Name = "other"
	n.add(zero, &Usage{Disk: 4096, Containers: map[string]Share{"main": {Disk: 4096}}}) // of a container, 0 is no limit
	withInit := func(name string, policy *corev1.ContainerRestartPolicy) *core.Pod {
		pod := newPod(name, 0, "", "")
		first := newPod("", 0, "", "1Mi").Spec.Containers[0]
		first.Name, first.RestartPolicy = "first", policy
		pod.Spec.InitContainers = []core.Container{first}
		return pod
	}
	always := corev1.ContainerRestartPolicyAlways
	over := map[string]Share{"first": {Disk: 1<<20 + 1}}
	n.add(withInit("sidecar", &always), &Usage{Disk: 1, Containers: over})
	n.add(withInit("init", nil), &Usage{Disk: 1 << 20, Containers: over}) // only the pod's limit counts
	n.add(withInit("initialized", nil), &Usage{Disk: 1<<20 + 1})
	if got := n.step(t, 0); got != "volume pod container sidecar initialized" {
		t.Errorf("ended: %s", got)
	}
	for i, want := range []Decision{
		{Grace: 1, Signal: "emptydirfs.limit", Message: `Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". `, Limit: true},
		{Grace: 1, Signal: "ephemeralpodfs.limit", Message: `Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. `, Limit: true},
		{Grace: 1, Signal: "ephemeralcontainerfs.limit", Message: `Container main exceeded its local ephemeral storage limit "1Mi". `, Limit: true},
		{Grace: 1, Signal: "ephemeralcontainerfs.limit", Message: `Container first exceeded its local ephemeral storage limit "1Mi". `, Limit: true},
		{Grace: 1, Signal: "ephemeralpodfs.limit", Message: `Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. `, Limit: true},
	} {
		if n.verdicts[i] != want {
			t.Errorf("%+v, want %+v", n.verdicts[i], want)
		}
	}
}

func TestLimitsThatAreIgnored(t *testing.T) {
	n := newNode(t, Settings{})
	n.add(newPod("pod", 0, "", "1Mi"), &Usage{Disk: 1<<20 + 1})
	n.IgnoreLimits = true
	if got := n.step(t, 0); got != "" {
		t.Errorf("ended: %s", got)
	}
	n.IgnoreLimits = false
	if got := n.step(t, 0); got != "pod" {
		t.Errorf("with limits, ended: %s", got)
	}
}

func TestAPodThatCantBeMeasuredHidesNothing(t *testing.T) {
	n := newNode(t, Settings{Hard: map[string]string{"memory.available": "100"}})
	n.add(newPod("limited", 0, "", "1Mi"), &Usage{})
	n.add(newPod("large", 0, "", ""), memory(1<<20))
	n.seen[MemoryAvailable] = Observation{Available: 1, Capacity: 1000}
	measure := n.Measure
	n.Measure = func(ctx context.Context, pods []*core.Pod, disk bool) (map[types.UID]*Usage, error) {
		usages, _ := measure(ctx, pods, disk)
		return usages, errors.New("file name too long")
	}
	if err := n.Synchronize(t.Context()); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("error %v", err)
	}
	if len(n.evicted) != 1 || n.evicted[0] != "large" {
		t.Errorf("ended %v, want the largest", n.evicted)
	}
	n.Measure = func(context.Context, []*core.Pod, bool) (map[types.UID]*Usage, error) {
		return nil, errors.New("the runtime is away")
	}
	n.seen[MemoryAvailable] = Observation{Available: 1000, Capacity: 1000}
	if err := n.Synchronize(t.Context()); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("error %v", err)
	}
	n.clock.Step(time.Hour)
	if _ = n.Synchronize(t.Context()); n.IsUnderPressure(corev1.NodeMemoryPressure) {
		t.Error("the node was not looked at while the runtime was away")
	}
}
