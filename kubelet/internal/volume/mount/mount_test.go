package mount

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mountable is a directory for the test's mounts; nothing stays mounted below
// it.
func mountable(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	probe := filepath.Join(dir, "probe")
	if err := os.Mkdir(probe, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", probe, "tmpfs", 0, ""); errors.Is(err, unix.EPERM) {
		t.Skip("mounting is not permitted here")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := UnmountBelow(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTmpfsIsMountedOnceAndBounded(t *testing.T) {
	dir := mkdir(t, mountable(t), "a b") // a name that the mount table escapes
	for range 2 {
		if err := Tmpfs(dir, 64<<10); err != nil {
			t.Fatal(err)
		}
	}
	if points, err := Below(dir); err != nil || !slices.Equal(points, []string{dir}) {
		t.Errorf("mounted below: %q, %v; want only the directory", points, err)
	}
	file, err := os.Create(filepath.Join(dir, "full"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n, err := io.Copy(file, io.LimitReader(zeros{}, 1<<20))
	if !errors.Is(err, unix.ENOSPC) || n > 64<<10 {
		t.Errorf("%d bytes went in, %v; want at most %d and no space left", n, err, 64<<10)
	}
	if inside, err := IsTmpfs(mkdir(t, dir, "inside")); err != nil || inside {
		t.Errorf("a directory in a tmpfs counts as one: %v, %v", inside, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// NoSwap says what Tmpfs does.
func TestMemoryIsKeptFromSwap(t *testing.T) {
	keeps, err := NoSwap()
	if err != nil {
		t.Fatal(err)
	}
	dir := mountable(t)
	if err := Tmpfs(dir, 0); err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[1] == dir {
			if has := slices.Contains(strings.Split(fields[3], ","), "noswap"); has != keeps {
				t.Errorf("%s, and NoSwap says %t", line, keeps)
			}
			return
		}
	}
	t.Error("it is not mounted")
}

func TestUnmountBelowTakesAllAndNothingElse(t *testing.T) {
	base := mountable(t)
	pod, other := mkdir(t, base, "pod"), mkdir(t, base, "pod2")
	for _, dir := range []string{other, mkdir(t, pod, "v"), mkdir(t, pod, "v")} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := Tmpfs(mkdir(t, pod, "v", "nested"), 0); err != nil {
		t.Fatal(err)
	}
	busy, err := os.Create(filepath.Join(pod, "v", "busy"))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if err := UnmountBelow(pod); err != nil {
		t.Fatal(err)
	}
	if points, err := Below(pod); err != nil || len(points) != 0 {
		t.Errorf("still mounted: %q, %v", points, err)
	}
	if is, err := IsTmpfs(other); err != nil || !is {
		t.Errorf("the neighbour's mount is gone: %v, %v", is, err)
	}
}

// Under systemd all mounts are shared: unmounting below a bind mount must not
// unmount it at the source.
func TestUnmountBelowLeavesWhatWasBoundAlone(t *testing.T) {
	base := mountable(t)
	host, target := mkdir(t, base, "host"), mkdir(t, base, "target")
	if err := Tmpfs(host, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", host, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	inner := mkdir(t, host, "inner")
	if err := errors.Join(Tmpfs(inner, 0), Tmpfs(mkdir(t, inner, "innermost"), 0)); err != nil {
		t.Fatal(err)
	}
	before, err := Below(host)
	if err != nil {
		t.Fatal(err)
	}
	// A container with mount propagation may do this, or an earlier kubelet.
	if err := errors.Join(unix.Mount(host, target, "", unix.MS_BIND|unix.MS_REC, ""), UnmountBelow(target)); err != nil {
		t.Fatal(err)
	}
	if after, err := Below(host); err != nil || !slices.Equal(after, before) {
		t.Errorf("the host has %q left (%v), want %q", after, err, before)
	}
}

func TestBindGoesByTheOpenFile(t *testing.T) {
	base := mountable(t)
	inside, outside := mkdir(t, base, "inside"), mkdir(t, base, "outside")
	if err := os.WriteFile(filepath.Join(inside, "mark"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The path is replaced by a link between opening and mounting.
	if err := errors.Join(os.Rename(inside, inside+".moved"), os.Symlink(outside, inside)); err != nil {
		t.Fatal(err)
	}
	mounted, target := mkdir(t, inside+".moved", "mounted"), mkdir(t, base, "target")
	if err := errors.Join(Tmpfs(mounted, 0), Bind(file, target)); err != nil {
		t.Fatal(err)
	}
	// A copy of the mount would keep the mount point busy.
	if err := errors.Join(Unmount(mounted), os.Remove(mounted)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(target, "mark")); err != nil {
		t.Errorf("the target shows something else: %v", err)
	}
}

func TestHugePagesAreMountedOnce(t *testing.T) {
	dir := mkdir(t, mountable(t), "pages")
	sizes, err := os.ReadDir("/sys/kernel/mm/hugepages")
	if err != nil || len(sizes) == 0 {
		t.Skipf("the machine has no huge pages: %v", err)
	}
	var kib int64
	if _, err := fmt.Sscanf(sizes[0].Name(), "hugepages-%dkB", &kib); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := HugePages(dir, kib<<10); err != nil {
			t.Fatal(err)
		}
	}
	if points, err := Below(dir); err != nil || !slices.Equal(points, []string{dir}) {
		t.Errorf("mounted below: %q, %v; want only the directory", points, err)
	}
	var file unix.Statfs_t
	if err := unix.Statfs(dir, &file); err != nil || file.Flags&unix.ST_NODEV == 0 {
		t.Errorf("flags %x, %v: devices can be made here", file.Flags, err)
	}
	if err := HugePages(dir, kib<<11); err == nil {
		t.Error("pages of another size are taken for those of the volume")
	}
	if err := HugePages(mkdir(t, filepath.Dir(dir), "odd"), 12345); err == nil {
		t.Error("pages of a size that the machine does not have were mounted")
	}
}
