package volume

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Each volume of a pod is told of when it is removed, as when it is made, and again
// for each attempt that failed.
func TestRemovedVolumesAreObserved(t *testing.T) {
	needsMounts(t)
	config := configFor(t.TempDir(), newStore())
	var seen []string
	config.Observe = func(plugin, operation string, _ time.Duration, err error) {
		if operation != "volume_unmount" {
			return
		}
		if err != nil {
			plugin += " failed"
		}
		seen = append(seen, plugin)
	}
	m, err := NewManager(config)
	must(t, err)
	pod := podWith(configMapVolume("m", false), emptyDirVolume("ram", corev1.StorageMediumMemory), emptyDirVolume("scratch", ""))
	mustMount(t, m, pod)

	// The tmpfs is hidden below another mount, and can't be unmounted.
	must(t, unix.Mount(config.RootDir, config.RootDir, "", unix.MS_BIND, ""))
	err = m.Unmount(t.Context(), pod.UID)
	must(t, unix.Unmount(config.RootDir, 0))
	if err == nil {
		t.Error("what is hidden was unmounted")
	}
	must(t, m.Unmount(t.Context(), pod.UID), m.RemovePodDir(t.Context(), pod.UID))

	want := []string{
		"kubernetes.io/configmap", "kubernetes.io/configmap failed",
		"kubernetes.io/empty-dir", "kubernetes.io/empty-dir", "kubernetes.io/empty-dir failed", "kubernetes.io/empty-dir failed",
	}
	if slices.Sort(seen); !slices.Equal(seen, want) {
		t.Errorf("observed %q, want %q", seen, want)
	}
}
