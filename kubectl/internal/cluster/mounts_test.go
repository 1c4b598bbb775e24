package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A mount that is not seen would be taken for the cluster's own files, and emptied.
func TestMountsAreSeen(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	l := Layout{Dir: t.TempDir()}
	source, target := filepath.Join(t.TempDir(), "other\u3000blanks"), l.path("target")
	if err := errors.Join(os.Mkdir(source, 0o700), os.Mkdir(target, 0o700), unix.Mount(source, target, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
	if points, err := l.mounts(); err != nil || !slices.Equal(points, []mountPoint{{path: target, in: "target"}}) {
		t.Errorf("mounted: %v, %v", points, err)
	}
	link := Layout{Dir: filepath.Join(t.TempDir(), "link")}
	if err := os.Symlink(l.Dir, link.Dir); err != nil {
		t.Fatal(err)
	}
	if points, err := link.mounts(); err != nil || !slices.Equal(points, []mountPoint{{path: target, in: "target"}}) {
		t.Errorf("mounted below where a link leads to: %v, %v", points, err)
	}
	over := l.Dir
	l.Dir = filepath.Dir(over)
	if err := unix.Mount(over, over, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(over, unix.MNT_DETACH) })
	if points, err := l.mounts(); err != nil || !slices.Equal(points, []mountPoint{{path: target, in: filepath.Base(over) + "/target"},
		{path: over, in: filepath.Base(over), overSelf: true}}) {
		t.Errorf("mounted: %v, %v", points, err)
	}
	if err := l.unmount(anyMount); err != nil {
		t.Error(err)
	}
	if points, err := l.mounts(); err != nil || len(points) > 0 {
		t.Errorf("still mounted: %v, %v", points, err)
	}
}

// mountTmpfs mounts one with a file in it.
func mountTmpfs(t *testing.T, at string) (file string) {
	t.Helper()
	file = filepath.Join(at, "file")
	if err := errors.Join(os.MkdirAll(at, 0o700), unix.Mount("tmpfs", at, "tmpfs", 0, "size=64k,mode=755"), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	return file
}

// What programs have mounted for pods goes; a user's own stays mounted, with what is in it.
func TestDownLeavesMountsOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l := clusterWithoutPrograms(t)
	own := mountTmpfs(t, l.path("own"))
	for _, volume := range []string{l.path("kubelet", "pods", "x", "volume"), l.path("run", "containerd", "rootfs")} {
		mountTmpfs(t, volume)
	}
	if err := unix.Mount(l.KubeletRoot(), l.KubeletRoot(), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(l.KubeletRoot(), unix.MNT_DETACH) })
	for _, at := range []string{l.path("containerd"), l.path("apiserver", "backup")} { // a disk for the images, say
		disk := mountTmpfs(t, at)
		err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr})
		if partial, ok := errors.AsType[*PartialError](err); !ok || !strings.Contains(partial.Error(), at+" is a mount point") {
			t.Errorf("down with something mounted at %s: %v", at, err)
		}
		if _, err := os.Stat(disk); err != nil {
			t.Error(err)
		}
		if err := unix.Unmount(at, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(l.Dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// A cluster whose directory is a disk of its own.
func TestDownWhereTheDirectoryIsMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l := layout(t)
	if err := os.Remove(mountTmpfs(t, l.Dir)); err != nil {
		t.Fatal(err)
	}
	makeWithoutPrograms(t, l)
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(l.Dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := unix.Unmount(l.Dir, 0); err != nil {
		t.Errorf("it was unmounted: %v", err)
	}
}

// A link to the place for the cluster is the user's.
func TestDownLeavesALinkToTheDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l := clusterWithoutPrograms(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(l.Dir, link); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), DownOptions{Dir: link}, &Lines{Out: os.Stderr}); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(link); err != nil || to != l.Dir {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if entries, err := os.ReadDir(l.Dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// A disk that a user has mounted over what the programs have is not theirs to unmount.
func TestDownLeavesWhatIsMountedOverItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l := clusterWithoutPrograms(t)
	mountTmpfs(t, l.path("kubelet", "pods", "x", "volume"))
	if err := unix.Mount(l.KubeletRoot(), l.KubeletRoot(), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(l.KubeletRoot(), unix.MNT_DETACH) })
	disk := mountTmpfs(t, l.KubeletRoot())
	err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr})
	if err == nil || !strings.Contains(err.Error(), l.KubeletRoot()+" is a mount point") {
		t.Errorf("down: %v", err)
	}
	if _, err := os.Stat(disk); err != nil {
		t.Error(err)
	}
	if err := unix.Unmount(l.KubeletRoot(), 0); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err != nil {
		t.Error(err)
	}
}

// Where a user has made links to another disk of the programs' directories, their mounts there go, and
// nothing else of the disk: no mount of others, and no file.
func TestDownWhereLinksLeadToAnotherDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l, disk := clusterWithoutPrograms(t), t.TempDir()
	file := mountTmpfs(t, disk)
	for _, name := range []string{"containerd", "kubelet"} {
		if err := errors.Join(os.RemoveAll(l.path(name)), os.Symlink(disk, l.path(name))); err != nil {
			t.Fatal(err)
		}
	}
	theirs := mountTmpfs(t, filepath.Join(disk, "home"))
	ours := []string{
		mountTmpfs(t, filepath.Join(disk, "pods", "x", "volume")),
		mountTmpfs(t, filepath.Join(disk, "io.containerd.snapshotter.v1.overlayfs", "1")),
	}
	var told strings.Builder
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: &told}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told.String(), "not removed: "+disk) {
		t.Errorf("it does not say what is left: %s", &told)
	}
	for _, kept := range []string{file, theirs} {
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("of others: %v", err)
		}
	}
	for _, gone := range ours {
		if _, err := os.Stat(gone); err == nil {
			t.Errorf("%s is still mounted", filepath.Dir(gone))
		}
	}
}

// A link may lead to a disk that is mounted in the cluster's directory, in the place of another
// program's: what the disk holds must not go with that program's.
func TestDownWhereALinkLeadsToADiskInTheDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l := clusterWithoutPrograms(t)
	disk := mountTmpfs(t, l.path("containerd"))
	if err := errors.Join(os.RemoveAll(l.KubeletRoot()), os.Symlink("containerd", l.KubeletRoot())); err != nil {
		t.Fatal(err)
	}
	err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr})
	if err == nil || !strings.Contains(err.Error(), l.path("containerd")+" is a mount point") {
		t.Errorf("down: %v", err)
	}
	if _, err := os.Stat(disk); err != nil {
		t.Errorf("of a user: %v", err)
	}
}

// The kubelet may have bound the disk over itself, and what a user has mounted there since is below that.
func TestDownLeavesMountsOfOthersInAKubeletsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	for _, isUsed := range []bool{false, true} {
		l, disk := clusterWithoutPrograms(t), t.TempDir()
		before := mountTmpfs(t, filepath.Join(disk, "before"))
		err := errors.Join(os.RemoveAll(l.KubeletRoot()), os.Symlink(disk, l.KubeletRoot()), unix.Mount(disk, disk, "", unix.MS_BIND|unix.MS_REC, ""))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
		since := before
		if isUsed {
			since = mountTmpfs(t, filepath.Join(disk, "since"))
		}
		volume := mountTmpfs(t, filepath.Join(disk, "pods", "x", "volume"))
		if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err != nil {
			t.Error(err)
		}
		for _, kept := range []string{before, since} {
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("of others: %v", err)
			}
		}
		if _, err := os.Stat(volume); err == nil {
			t.Errorf("%s is still mounted", filepath.Dir(volume))
		}
		if err := unix.Unmount(disk, unix.MNT_DETACH); (err == nil) != isUsed {
			t.Errorf("with mounts of others since (%t), the kubelet's own: %v", isUsed, err)
		}
	}
}

// What a link in a kubelet's directory leads to is not the kubelet's.
func TestAnyMountIsInTheDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	l, elsewhere := Layout{Dir: t.TempDir()}, t.TempDir()
	theirs := mountTmpfs(t, filepath.Join(elsewhere, "containerd", "x"))
	if err := os.Symlink(elsewhere, l.path("run")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.unmount(anyMount), l.checkUnmounted()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
}
