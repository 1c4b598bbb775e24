package mount

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What is mounted in a shared directory appears in its other mounts.
func TestShare(t *testing.T) {
	base := mountable(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// A mount that the test shares with nobody, whatever the machine's mounts are.
	must(unix.Mount(base, base, "", unix.MS_BIND, ""))
	must(unix.Mount("", base, "", unix.MS_PRIVATE, ""))
	volume, container := filepath.Join(base, "volume"), filepath.Join(base, "container")
	must(os.MkdirAll(filepath.Join(volume, "inner"), 0o755))
	must(os.Mkdir(container, 0o755))
	must(MakeShared(volume))
	must(MakeShared(volume))
	if points, err := Below(volume); err != nil || len(points) != 1 {
		t.Errorf("shared twice, it is mounted at %v, %v", points, err)
	}
	must(unix.Mount(volume, container, "", unix.MS_BIND, ""))
	must(Tmpfs(filepath.Join(volume, "inner"), 1<<20))
	if there, err := IsTmpfs(filepath.Join(container, "inner")); err != nil || !there {
		t.Errorf("the mount does not appear in the other one: %v", err)
	}
}
