package cgroup

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
)

// What a group has got once is not written again, however often a pod is synced; what it has not got, or
// what is gone since, is.
func TestGroupsAreWrittenWhenTheyMust(t *testing.T) {
	written := 0
	m := newManager(t, Options{Observe: func(operation string, _ time.Duration) {
		if operation != "destroy" {
			written++
		}
	}})
	pod := podOf("g", corev1.ResourceRequirements{Limits: list("1", "64Mi")})
	create := func(want int) {
		t.Helper()
		if err := m.Create(pod); err != nil {
			t.Error(err)
		}
		if !exists(m, pod) || written != want {
			t.Errorf("the group exists %v and was written %d times, want %d", exists(m, pod), written, want)
		}
	}
	before := 0
	if !cgroups.IsCgroup2UnifiedMode() { // whose groups can't be made to fail here
		elsewhere := m.mounts
		m.mounts = map[string]string{"memory": filepath.Join(t.TempDir(), "no", "hierarchy", "\x00")}
		if err := m.Create(pod); err == nil {
			t.Fatal("it can make groups where there are none")
		}
		m.mounts, before = elsewhere, written
	}
	create(before + 1)
	create(before + 1)
	if err := m.RaiseLimits(pod, pod); err != nil {
		t.Error(err)
	}
	create(before + 1)
	if err := m.Destroy(pod.UID, QOSClass(pod)); err != nil {
		t.Error(err)
	}
	create(before + 2)
	pod.Spec.Containers[0].Resources.Limits = list("1", "32Mi")
	create(before + 3)
	for _, dir := range dirs(m.Root + "/kubepods/podg") { // by others
		if err := cgroups.RemovePath(dir); err != nil {
			t.Error(err)
		}
	}
	create(before + 4)
	if got := value(t, m.Root+"/kubepods/podg", "memory/memory.limit_in_bytes", "memory.max"); got != fmt.Sprint(32<<20) {
		t.Errorf("the limit of memory is %s", got)
	}
	if err := m.Destroy(pod.UID, QOSClass(pod)); err != nil {
		t.Error(err)
	}
}
