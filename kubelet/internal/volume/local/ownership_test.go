package local

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Another pod with the volume may replace a directory by a pipe after it was looked at.
func TestAPipeInADirectorysPlace(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := (groupChange{root, os.Getgid(), new(atomic.Int64)}).below(t.Context(), "pipe"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("error %v", err)
	}
}

func TestFilesAreCounted(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "sub", "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	if err := setGroup(t.Context(), dir, os.Getgid(), &done); err != nil || done.Load() != 3 {
		t.Errorf("%d files, error %v", done.Load(), err)
	}
}
