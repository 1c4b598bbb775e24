package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where every user can write, nothing is made that root runs.
func TestSharedDirectory(t *testing.T) {
	l := layout(t)
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky} {
		if err := os.Chmod(l.Dir, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := l.prepare(); err == nil || !strings.Contains(err.Error(), "every user") {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if entries, err := os.ReadDir(l.Dir); err != nil || len(entries) > 0 {
		t.Errorf("made: %v, %v", entries, err)
	}
	if err := os.Chmod(l.Dir, 0o775); err != nil {
		t.Fatal(err)
	}
	unlock, err := l.prepare()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// Nor where another user owns the directory, or a link to it.
func TestDirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	t.Setenv("SUDO_UID", "")
	const stranger = 12345
	for name, where := range map[string]func(root string) (dir string, err error){
		"the directory": func(root string) (string, error) {
			dir := filepath.Join(root, "c")
			return dir, errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, stranger, 0))
		},
		"a link": func(root string) (string, error) {
			to, link := filepath.Join(root, "to"), filepath.Join(root, "link")
			return link, errors.Join(os.Mkdir(to, 0o755), os.Symlink(to, link), os.Lchown(link, stranger, 0))
		},
		"what a link leads to": func(root string) (string, error) {
			to, link := filepath.Join(root, "to"), filepath.Join(root, "link")
			return link, errors.Join(os.Mkdir(to, 0o755), os.Symlink(to, link), os.Chown(to, stranger, 0))
		},
	} {
		root := t.TempDir()
		dir, err := where(root)
		if err != nil {
			t.Fatal(err)
		}
		l := Layout{Dir: dir}
		if _, err := l.prepare(); err == nil || !strings.Contains(err.Error(), "replace programs that root runs from there") {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "chown -h root") != (name == "a link") {
			t.Errorf("%s: the remedy is another's: %v", name, err)
		}
		if _, err := os.Stat(l.path("run")); err == nil {
			t.Errorf("%s: something was made", name)
		}
	}
	l := layout(t)
	if err := errors.Join(os.MkdirAll(l.Dir, 0o755), os.Chown(filepath.Dir(l.Dir), stranger, 0)); err != nil {
		t.Fatal(err)
	}
	prepare := func() {
		t.Helper()
		unlock, err := l.prepare()
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	}
	prepare() // in another user's checkout
	// Who becomes root by sudo can replace everything anyway.
	t.Setenv("SUDO_UID", "12345")
	if err := os.Chown(l.Dir, stranger, 0); err != nil {
		t.Fatal(err)
	}
	prepare()
}
