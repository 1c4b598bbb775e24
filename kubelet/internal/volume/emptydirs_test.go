package volume

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A database's data directory must not become everybody's because the kubelet has restarted; one that was
// not finished is.
func TestAPodsEmptyDirsStayAsItMadeThem(t *testing.T) {
	needsMounts(t)
	group := int64(4321)
	volumes := []corev1.Volume{emptyDirVolume("disk", ""), emptyDirVolume("ram", corev1.StorageMediumMemory)}
	pod := podWith(volumes...)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group}
	m := newManager(t, newStore())
	restart := func() {
		t.Helper()
		m = managerIn(t, m.config.RootDir, newStore())
		mustMount(t, m, pod)
	}
	expect := func(when string, mode os.FileMode, group uint32) {
		t.Helper()
		for i := range volumes {
			info, err := os.Stat(m.Dir(pod.UID, &volumes[i]))
			must(t, err)
			if got := info.Sys().(*syscall.Stat_t).Gid; info.Mode()&(os.ModeSetgid|os.ModePerm) != mode || got != group {
				t.Errorf("%s, %s: %v of group %d, want %v of %d", volumes[i].Name, when, info.Mode(), got, mode, group)
			}
		}
	}
	mustMount(t, m, pod)
	expect("made", os.ModeSetgid|0o777, 4321)

	for i := range volumes {
		dir := m.Dir(pod.UID, &volumes[i])
		must(t, os.Chown(dir, 999, 999), os.Chmod(dir, 0o700))
	}
	restart()
	expect("of a running pod", 0o700, 999)

	must(t, os.RemoveAll(filepath.Join(m.podDir(pod.UID), "plugins")))
	restart()
	expect("half made", os.ModeSetgid|0o777, 4321)

	must(t, m.Unmount(t.Context(), pod.UID), os.MkdirAll(m.Dir(pod.UID, &volumes[0]), 0o755))
	restart()
	expect("half made after others that have been removed", os.ModeSetgid|0o777, 4321)

	must(t, syscall.Unmount(m.Dir(pod.UID, &volumes[1]), 0))
	restart()
	expect("after the machine has restarted", os.ModeSetgid|0o777, 4321)
}
