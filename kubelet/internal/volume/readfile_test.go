package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Files that a pod wrote are read from its own directory, whatever links it
// made.
func TestFilesThatPodsWroteAreRead(t *testing.T) {
	f := newSubPathFixture(t)
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte("secret"), 0o600), os.Mkdir(filepath.Join(f.dir, "d"), 0o755),
		os.WriteFile(filepath.Join(f.dir, "d/env"), []byte("K='v'"), 0o644), os.Symlink("d/env", filepath.Join(f.dir, "inside")),
		os.Symlink(outside, filepath.Join(f.dir, "out")), unix.Mkfifo(filepath.Join(f.dir, "pipe"), 0o644),
		os.WriteFile(filepath.Join(f.dir, "huge"), make([]byte, maxFile+1), 0o644))
	for _, path := range []string{"d/env", "inside"} {
		if data, err := f.m.ReadFile(f.pod, "v", path); err != nil || string(data) != "K='v'" {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	for path, want := range map[string]string{"out": "escapes", "../x": "escapes", "pipe": "is not a file", "d": "is not a file", "huge": "more than"} {
		if data, err := f.m.ReadFile(f.pod, "v", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %q", path, data, err, want)
		}
	}
	if _, err := f.m.ReadFile(f.pod, "v", "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, volume := range []string{"config", "none"} {
		if data, err := f.m.ReadFile(f.pod, volume, "k"); err == nil {
			t.Errorf("%s: %q", volume, data)
		}
	}
}
