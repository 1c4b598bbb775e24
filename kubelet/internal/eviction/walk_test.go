package eviction

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kctl/kubelet/internal/filesystem/filesystemtest"
	"kctl/proto/mountinfo"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A pod can't hide anything by nesting directories deeper than a path can name,
// or than files can be open.
func TestWhatIsNestedDeepIsMeasured(t *testing.T) {
	root := t.TempDir()
	const depth = 200
	here, err := os.OpenRoot(root)
	must(t, err)
	for range depth { // a path of 50,000 bytes
		must(t, here.WriteFile("file", make([]byte, 5000), 0o600))
		must(t, here.Mkdir("empty", 0o700))
		name := strings.Repeat("d", 250)
		must(t, here.Mkdir(name, 0o700))
		next, err := here.OpenRoot(name)
		must(t, err)
		must(t, here.Close())
		here = next
	}
	must(t, here.Close())
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: before.Max}))
	bytes, inodes, err := walk(t.Context(), root, true, nil)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	if err != nil || inodes != 1+3*depth || bytes < 5000*depth {
		t.Errorf("%d bytes, %d inodes, %v; want %d inodes", bytes, inodes, err, 1+3*depth)
	}
}

// A walk counts what du counts, and stays within its directory.
func TestWalk(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "large"), make([]byte, 1<<20), 0o600))
	must(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o700))
	must(t, os.WriteFile(filepath.Join(root, "a", "file"), make([]byte, 100_000), 0o600))
	must(t, os.Link(filepath.Join(root, "a", "file"), filepath.Join(root, "a", "b", "same")))
	must(t, os.Symlink(outside, filepath.Join(root, "link")))
	must(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	bytes, inodes, err := walk(t.Context(), root, true, nil)
	if err != nil || inodes != 6 || bytes < 100_000 || bytes > 200_000 {
		t.Errorf("%d bytes, %d inodes, %v", bytes, inodes, err)
	}
	if below, files, err := walk(t.Context(), root, false, nil); below >= bytes || files != inodes-1 || err != nil {
		t.Errorf("without the directory itself: %d bytes, %d inodes, %v", below, files, err)
	}
	if bytes, inodes, err := walk(t.Context(), filepath.Join(root, "none"), true, nil); bytes != 0 || inodes != 0 || err != nil {
		t.Errorf("nothing: %d bytes, %d inodes, %v", bytes, inodes, err)
	}
}

// Of a directory with many others no more is held than was read at once.
func TestWhatIsHeldOfADirectoryIsBounded(t *testing.T) {
	root := t.TempDir()
	const dirs = 2000
	for i := range dirs {
		must(t, os.MkdirAll(filepath.Join(root, fmt.Sprintf("directory-%d", i), "below"), 0o700))
	}
	_, inodes, err := walk(t.Context(), root, true, nil)
	if err != nil || inodes != 1+2*dirs {
		t.Errorf("%d inodes, %v; want %d", inodes, err, 1+2*dirs)
	}
	fd, err := openDir(unix.AT_FDCWD, root)
	must(t, err)
	defer unix.Close(fd)
	w, at, found := &walker{ctx: t.Context(), seen: map[identity]bool{}}, level{}, 0
	for !at.ended {
		at.dirs = nil
		w.read(fd, &at)
		held := 0
		for _, dir := range at.dirs {
			held += len(dir.name)
		}
		if found += len(at.dirs); held > readAtOnce {
			t.Errorf("%d bytes of names are held", held)
		}
	}
	if found != dirs || w.err != nil {
		t.Errorf("%d directories, %v", found, w.err)
	}
}

// A directory that is moved while it is walked does not lead the walk out of
// its root.
func TestADirectoryThatIsMoved(t *testing.T) {
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o700))
	must(t, os.Mkdir(filepath.Join(root, "other"), 0o700))
	fd, err := openDir(unix.AT_FDCWD, filepath.Join(root, "a", "b"))
	must(t, err)
	defer unix.Close(fd)
	var above unix.Stat_t
	must(t, unix.Stat(filepath.Join(root, "a"), &above))
	must(t, os.Rename(filepath.Join(root, "a", "b"), filepath.Join(root, "other", "b")))
	if _, err := openSame(fd, "..", identity{above.Dev, above.Ino}); err == nil || !strings.Contains(err.Error(), "was moved") {
		t.Errorf("error %v", err)
	}
}

// What is mounted in a pod's directory is not the pod's use of the disk, for which it could be
// evicted, and is not even looked at: the server of a file system may be away.
func TestAWalkStaysOnItsFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount file systems")
	}
	root := t.TempDir()
	large, silent := filepath.Join(root, "a", "large"), filepath.Join(root, "a", "b c", "silent")
	must(t, os.MkdirAll(large, 0o700))
	must(t, os.MkdirAll(silent, 0o700))
	must(t, unix.Mount("tmpfs", large, "tmpfs", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(large, 0)) })
	must(t, os.WriteFile(filepath.Join(large, "file"), make([]byte, 1<<20), 0o600))
	before, err := mountinfo.Read()
	must(t, err)
	filesystemtest.MountSilent(t, silent)
	mounts, err := mountinfo.Read()
	must(t, err)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(root, link))
	for _, dir := range []string{filepath.Join(root, "a"), filepath.Join(link, "a")} {
		if bytes, inodes, err := walk(t.Context(), dir, true, mounts); err != nil || inodes != 2 || bytes >= 1<<20 {
			t.Errorf("%s: %d bytes, %d inodes, %v; want itself and one directory", dir, bytes, inodes, err)
		}
	}
	if bytes, inodes, err := walk(t.Context(), large, true, before); err != nil || inodes != 2 || bytes != 1<<20 {
		t.Errorf("what is mounted, itself: %d bytes, %d inodes, %v", bytes, inodes, err)
	}
	must(t, unix.Mount("tmpfs", filepath.Join(root, "a", "b c"), "tmpfs", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(filepath.Join(root, "a", "b c"), 0)) })
	must(t, os.WriteFile(filepath.Join(root, "a", "b c", "file"), make([]byte, 1<<20), 0o600))
	if bytes, inodes, err := walk(t.Context(), root, true, before); err != nil || inodes != 2 || bytes >= 1<<20 {
		t.Errorf("mounted since the table was read: %d bytes, %d inodes, %v", bytes, inodes, err)
	}
}

// A pod can't hide what it wrote in a subvolume, which has a device number of its own and is not
// mounted, and in which inodes have the numbers of other subvolumes'.
func TestAWalkEntersSubvolumes(t *testing.T) {
	root := filepath.Join(mountBtrfs(t), "root")
	must(t, os.Mkdir(root, 0o700))
	makeSubvolume(t, root, "a")
	makeSubvolume(t, filepath.Join(root, "a"), "b")
	for _, dir := range []string{root, filepath.Join(root, "a"), filepath.Join(root, "a", "b")} {
		must(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600))
		must(t, os.Link(filepath.Join(dir, "file"), filepath.Join(dir, "same")))
	}
	unix.Sync() // until then no blocks are allotted
	mounts, err := mountinfo.Read()
	must(t, err)
	if bytes, inodes, err := walk(t.Context(), root, true, mounts); err != nil || inodes != 6 || bytes < 3<<20 {
		t.Errorf("%d bytes, %d inodes, %v; want three directories and as many files", bytes, inodes, err)
	}
	must(t, unix.Mount(filepath.Join(root, "a"), filepath.Join(root, "a", "b"), "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(filepath.Join(root, "a", "b"), 0)) })
	if _, inodes, err := walk(t.Context(), root, true, mounts); err != nil || inodes != 4 {
		t.Errorf("with one of them mounted since the table was read: %d inodes, %v", inodes, err)
	}
}

func mountBtrfs(t *testing.T) string {
	t.Helper()
	mkfs, err := exec.LookPath("mkfs.btrfs")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("skipped: needs root, and mkfs.btrfs of btrfs-progs")
	}
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 256<<20))
	for _, command := range []*exec.Cmd{exec.CommandContext(t.Context(), mkfs, "-q", image), exec.CommandContext(t.Context(), "mount", "-o", "loop", image, dir)} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Skipf("skipped: no btrfs can be made here: %s: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	return dir
}

func makeSubvolume(t *testing.T, dir, name string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "btrfs", "subvolume", "create", filepath.Join(dir, name)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
