package filesystem

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSpaceOfASmallDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,nr_inodes=10"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	before, err := Of(dir)
	if err != nil || before.Capacity != 64<<10 || before.Available != 64<<10 || before.Used != 0 || before.Inodes != 10 {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 16<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := Of(filepath.Join(dir, "file"))
	if err != nil || after.Used != 16<<10 || after.Available != 48<<10 || after.InodesUsed() != before.InodesUsed()+1 || after.InodesFree != before.InodesFree-1 {
		t.Errorf("%+v, %v", after, err)
	}
	if _, err := Of(filepath.Join(dir, "none")); !errors.Is(err, unix.ENOENT) {
		t.Errorf("of what is not there: %v", err)
	}
}
