package eviction

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	bytes, inodes, err := walk(root, true)
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
	bytes, inodes, err := walk(root, true)
	if err != nil || inodes != 6 || bytes < 100_000 || bytes > 200_000 {
		t.Errorf("%d bytes, %d inodes, %v", bytes, inodes, err)
	}
	if below, files, err := walk(root, false); below >= bytes || files != inodes-1 || err != nil {
		t.Errorf("without the directory itself: %d bytes, %d inodes, %v", below, files, err)
	}
	if bytes, inodes, err := walk(filepath.Join(root, "none"), true); bytes != 0 || inodes != 0 || err != nil {
		t.Errorf("nothing: %d bytes, %d inodes, %v", bytes, inodes, err)
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
