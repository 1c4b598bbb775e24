package atomic

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func write(t *testing.T, dir string, payload Payload, o Options) bool {
	t.Helper()
	o.Now = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	wrote, err := Write(dir, payload, o)
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	return wrote
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..2026_11_21_09_30_00.") {
			names = append(names, "VERSION")
			continue
		}
		names = append(names, e.Name())
	}
	return names
}

func expectNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := names(t, dir); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("directory holds %q, want %q", got, want)
	}
}

func TestWriteMakesUpstreamsLayout(t *testing.T) {
	dir := t.TempDir()
	payload := Payload{
		"a":     {Data: []byte("1"), Mode: 0o640},
		"b/c/d": {Data: []byte("2"), Mode: 0o444},
		"b/e":   {Data: nil, Mode: 0o600},
	}
	if Complete(dir) {
		t.Error("an empty directory is complete")
	}
	if !write(t, dir, payload, Options{}) {
		t.Error("the first Write wrote nothing")
	}
	if !Complete(dir) {
		t.Error("not complete after Write")
	}
	expectNames(t, dir, "VERSION", "..data", "a", "b")
	for path, file := range payload {
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil || string(data) != string(file.Data) {
			t.Errorf("%s holds %q, %v; want %q", path, data, err, file.Data)
		}
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.Mode().Perm() != os.FileMode(file.Mode) {
			t.Errorf("%s has mode %v, %v; want %o", path, info.Mode(), err, file.Mode)
		}
	}
	if target, err := os.Readlink(filepath.Join(dir, "a")); err != nil || target != "..data/a" {
		t.Errorf("a links to %q, %v", target, err)
	}
}

func TestWriteAgainOnlyWhenSomethingDiffers(t *testing.T) {
	user, group := int64(1234), int64(4321)
	base := func() Payload {
		return Payload{"a": {Data: []byte("1"), Mode: 0o644}, "b/c": {Data: []byte("2"), Mode: 0o600}}
	}
	cases := []struct {
		name    string
		payload func() Payload
		options Options
		root    bool
		wrote   bool
		want    []string
	}{
		{"nothing", base, Options{}, false, false, []string{"VERSION", "..data", "a", "b"}},
		{"content", func() Payload { p := base(); p["a"] = File{Data: []byte("9"), Mode: 0o644}; return p }, Options{}, false, true,
			[]string{"VERSION", "..data", "a", "b"}},
		{"mode", func() Payload { p := base(); p["a"] = File{Data: []byte("1"), Mode: 0o600}; return p }, Options{}, false, true,
			[]string{"VERSION", "..data", "a", "b"}},
		{"less", func() Payload { p := base(); delete(p, "a"); return p }, Options{}, false, true, []string{"VERSION", "..data", "b"}},
		{"more", func() Payload { p := base(); p["z"] = File{Mode: 0o644}; return p }, Options{}, false, true, []string{"VERSION", "..data", "a", "b", "z"}},
		{"all gone", func() Payload { return Payload{} }, Options{}, false, true, []string{"VERSION", "..data"}},
		{"user", func() Payload {
			p := base()
			p["a"] = File{Data: []byte("1"), Mode: 0o644, User: &user}
			return p
		}, Options{}, true, true, []string{"VERSION", "..data", "a", "b"}},
		{"group", base, Options{Group: &group}, true, true, []string{"VERSION", "..data", "a", "b"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Getuid() != 0 {
				t.Skip("changing owners needs root")
			}
			dir := t.TempDir()
			write(t, dir, base(), Options{})
			if got := write(t, dir, c.payload(), c.options); got != c.wrote {
				t.Errorf("wrote = %v, want %v", got, c.wrote)
			}
			expectNames(t, dir, c.want...)
			if write(t, dir, c.payload(), c.options) {
				t.Error("writing the same again wrote")
			}
		})
	}
}

func TestWriteGivesFilesToTheGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("changing owners needs root")
	}
	dir, group := t.TempDir(), int64(4321)
	write(t, dir, Payload{"b/c": {Data: []byte("x"), Mode: 0o400}}, Options{Group: &group})
	for path, mode := range map[string]os.FileMode{"b/c": 0o440, "b": os.ModeDir | os.ModeSetgid | 0o755} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if stat := info.Sys().(*syscall.Stat_t); info.Mode() != mode || int64(stat.Gid) != group {
			t.Errorf("%s has mode %v and group %d, want %v and %d", path, info.Mode(), stat.Gid, mode, group)
		}
	}
}

func TestWriteRefusesHostilePaths(t *testing.T) {
	for _, path := range []string{"", "/etc/passwd", "../x", "..x", "a/../../b", "a//b", "a/", "..data", "a/..", strings.Repeat("n", 256),
		strings.Repeat("n/", 2049) + "n"} {
		dir := t.TempDir()
		if _, err := Write(dir, Payload{path: {}}, Options{}); err == nil {
			t.Errorf("path %q was taken", path)
		}
		expectNames(t, dir)
	}
	if _, err := Write(t.TempDir(), Payload{"a": {}, "a/b": {}}, Options{}); err == nil {
		t.Error("a file below a file was taken")
	}
}

func TestWriteGoesOnAfterBeingCutShort(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, Payload{"a": {Data: []byte("1"), Mode: 0o644}}, Options{})
	// What a killed kubelet may leave: an incomplete version and a link that was
	// not renamed yet.
	if err := os.MkdirAll(filepath.Join(dir, "..2026_11_21_09_29_59.1", "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..2026_11_21_09_29_59.1", filepath.Join(dir, newDataName)); err != nil {
		t.Fatal(err)
	}
	write(t, dir, Payload{"a": {Data: []byte("2"), Mode: 0o644}}, Options{})
	expectNames(t, dir, "VERSION", "..data", "a")
	if data, _ := os.ReadFile(filepath.Join(dir, "a")); string(data) != "2" {
		t.Errorf("a holds %q, want 2", data)
	}
}

// A reader that keeps to one version of ..data sees two files that belong
// together, however often they are rewritten meanwhile.
func TestReadersNeverSeeHalfAVersion(t *testing.T) {
	dir := t.TempDir()
	payload := func(s string) Payload {
		return Payload{"a": {Data: []byte(s), Mode: 0o644}, "b": {Data: []byte(s), Mode: 0o644}}
	}
	write(t, dir, payload("0"), Options{})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				version, err := os.Readlink(filepath.Join(dir, dataName))
				if err != nil {
					t.Errorf("..data is missing: %v", err)
					return
				}
				a, errA := os.ReadFile(filepath.Join(dir, version, "a"))
				b, errB := os.ReadFile(filepath.Join(dir, version, "b"))
				if errors.Is(errA, fs.ErrNotExist) || errors.Is(errB, fs.ErrNotExist) {
					continue // this version was removed meanwhile
				}
				if string(a) != string(b) || errA != nil || errB != nil {
					t.Errorf("a = %q (%v), b = %q (%v)", a, errA, b, errB)
					return
				}
			}
		})
	}
	for i := range 300 {
		write(t, dir, payload(strings.Repeat("x", i)), Options{})
	}
	close(stop)
	readers.Wait()
}
