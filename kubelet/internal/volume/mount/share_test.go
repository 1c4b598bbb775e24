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
	must(Share(volume))
	must(Share(volume))
	if points, err := Below(volume); err != nil || len(points) != 1 {
		t.Errorf("shared twice, it is mounted at %v, %v", points, err)
	}
	must(unix.Mount(volume, container, "", unix.MS_BIND, ""))
	must(Tmpfs(filepath.Join(volume, "inner"), 1<<20))
	if there, err := IsTmpfs(filepath.Join(container, "inner")); err != nil || !there {
		t.Errorf("the mount does not appear in the other one: %v", err)
	}
}

func TestMountOfReadsTheTable(t *testing.T) {
	const table = "1 0 8:1 / / rw shared:1 - ext4 /dev/a rw\n" +
		"2 1 8:1 / /var rw - ext4 /dev/b rw\n" +
		"3 2 8:1 / /var/a\\040b rw master:3 shared:2 - ext4 /dev/c rw\n" +
		"4 2 8:1 / /over rw - ext4 /dev/d rw\n5 4 8:1 / /over rw shared:4 - ext4 /dev/e rw\n"
	for _, c := range []struct {
		path, point string
		shared      bool
	}{
		{"/etc", "/", true},
		{"/var", "/var", false},
		{"/variable", "/", true},
		{"/var/a b/c", "/var/a b", true},
		{"/var/a", "/var", false},
		{"/over/x", "/over", true},
	} {
		if point, shared := parse(table).mountOf(c.path); point != c.point || shared != c.shared {
			t.Errorf("%s is below %s, shared: %v, want %s, %v", c.path, point, shared, c.point, c.shared)
		}
	}
}
