package node

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/rest"
)

// What upstream's kubelet had in use is in use as long as it is mounted, and can be detached then.
func TestVolumesOfAnEarlierKubeletAreReleased(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t, client, clocktesting.NewFakeClock(time.Now()))
	root := t.TempDir()
	link := filepath.Join(t.TempDir(), "kubelet")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	config.AttachedMounted = func() bool { return AttachedMounted(link) }
	m := New(config)
	was := corev1.NodeStatus{VolumesInUse: []corev1.UniqueVolumeName{"kubernetes.io/csi/disk^1"}}
	for point, held := range map[string]bool{
		"plugins/kubernetes.io/csi/disk/1/globalmount":     true,
		"pods/uid/volumes/kubernetes.io~csi/data/mount":    true,
		"pods/uid/volumes/kubernetes.io~empty-dir/scratch": false,
	} {
		dir := filepath.Join(root, point)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		got := m.status(&was, state{}).VolumesInUse
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
		if held != slices.Equal(got, was.VolumesInUse) || !held && got != nil {
			t.Errorf("with a mount on %s: %v are in use", point, got)
		}
		if got := m.status(&was, state{}).VolumesInUse; got != nil {
			t.Errorf("without mounts %v are in use", got)
		}
	}
	config.AttachedMounted = func() bool { return AttachedMounted(filepath.Join(root, "none")) }
	if got := New(config).status(&was, state{}).VolumesInUse; !slices.Equal(got, was.VolumesInUse) {
		t.Errorf("where nothing can be known %v are in use", got)
	}
}
