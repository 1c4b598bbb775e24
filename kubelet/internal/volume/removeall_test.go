package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// A pod whose directories are nested deeper than files can be open is removed
// like any other, without using up file descriptors meanwhile.
func TestWhatIsNestedDeepIsRemoved(t *testing.T) {
	m := newManager(t, newStore())
	pod := podWith(emptyDirVolume("scratch", ""))
	mustMount(t, m, pod)
	nest(t, m.volumeDir(pod.UID, "emptyDir", "scratch"), 3*maxDepth)
	few(t, maxDepth+64)
	must(t, m.RemovePodDir(t.Context(), pod.UID))
	if _, err := os.Lstat(m.podDir(pod.UID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the pod's directory: %v", err)
	}
}

// nest makes nested directories, each with a file, a link to a file outside the
// pod, and an entry with the name used for moved ones.
func nest(t *testing.T, dir string, depth int) {
	t.Helper()
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
			t.Errorf("the target of a link: %v", err)
		}
	})
	must(t, os.MkdirAll(filepath.Join(dir, "..deep.1", "full"), 0o700))
	for range depth {
		must(t, os.Symlink(outside, filepath.Join(dir, "link")))
		must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		dir = filepath.Join(dir, "d")
		must(t, os.Mkdir(dir, 0))
	}
}

// few limits the files that the test may have open.
func few(t *testing.T, files uint64) {
	t.Helper()
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: before.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
}

// What can't be removed is named, and does not keep what lies beside it; once
// it can be removed, all of it is.
func TestWhatCantBeRemovedIsNamed(t *testing.T) {
	needsMounts(t)
	dir := t.TempDir()
	busy := filepath.Join(dir, "a", "busy")
	must(t, os.MkdirAll(busy, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "a", "beside"), nil, 0o600))
	must(t, unix.Mount("tmpfs", busy, "tmpfs", 0, ""))
	err := removeAll(dir)
	must(t, unix.Unmount(busy, 0))
	if want := "emptying " + dir + `: removing "busy": device or resource busy`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := os.Lstat(filepath.Join(dir, "a", "beside")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file beside it: %v", err)
	}
	must(t, removeAll(dir))
	must(t, removeAll(dir))
}

// What is still mounted in a removed directory belongs to somebody else.
func TestWhatIsMountedIsNotRemoved(t *testing.T) {
	needsMounts(t)
	dir, theirs := filepath.Join(t.TempDir(), "pod"), t.TempDir()
	target := filepath.Join(dir, "a", "b")
	must(t, os.MkdirAll(target, 0o755), os.WriteFile(filepath.Join(theirs, "kept"), []byte("x"), 0o600),
		unix.Mount(theirs, target, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, mount.UnmountBelow(dir)) })
	if err := removeAll(dir); err == nil {
		t.Error("a directory with a mount in it was removed")
	}
	expectFile(t, "x", theirs, "kept")
}

// The root directory may be a link, as /var/lib/kubelet often is: the kernel
// shows mounts under the link's target.
func TestARootDirectoryBehindALink(t *testing.T) {
	needsMounts(t)
	host, link := t.TempDir(), filepath.Join(t.TempDir(), "root")
	must(t, os.WriteFile(filepath.Join(host, "kept"), []byte("x"), 0o600), os.Symlink(t.TempDir(), link))
	m := managerIn(t, link, newStore())
	pod := podWith(corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Dir(host)}}})
	mustMount(t, m, pod)
	c := &core.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "host", MountPath: "/h", SubPath: filepath.Base(host)}}}
	_, err := m.Mounts(t.Context(), pod, c, nil)
	must(t, err, m.RemovePodDir(t.Context(), pod.UID))
	expectFile(t, "x", host, "kept")
}
