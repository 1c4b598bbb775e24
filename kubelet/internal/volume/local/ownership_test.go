package local

import (
	"errors"
	"os"
	"path/filepath"
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
	if err := (groupChange{root, os.Getgid()}).below(t.Context(), "pipe"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("error %v", err)
	}
}
