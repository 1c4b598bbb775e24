package hosts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that containers have mounted keeps its content when the disk is full.
func TestOverwriteKeepsWhatIsThereOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path, filler := filepath.Join(dir, "hosts"), filepath.Join(dir, "filler")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	long := strings.Repeat("new", 8000)
	for _, step := range []struct{ write, want string }{{long, "old"}, {"", "old"}, {long, long}, {"short", "short"}} {
		if step.write == "" { // there is room from here on
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			continue
		}
		err := overwrite(path, []byte(step.write))
		if (err == nil) != (step.write == step.want) {
			t.Errorf("overwrite = %v", err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != step.want {
			t.Errorf("%d bytes are there, %v; want %d", len(got), err, len(step.want))
		}
	}
}
