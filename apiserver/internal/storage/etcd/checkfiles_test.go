package etcd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// written is a data directory with some content that nobody has open.
func written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	_, embedded := etcdtest.StartIn(t, dir)
	for range 20 {
		if _, err := embedded.Client().Put(t.Context(), "key", strings.Repeat("x", 5000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := etcd.StartEmbedded(t.Context(), dir, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "another API server runs on it") {
		t.Errorf("two servers on one directory: %v", err)
	}
	if err := embedded.Stop(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A first start that was interrupted is started over.
func TestNothingOfAStore(t *testing.T) {
	dir := t.TempDir()
	snap := filepath.Join(dir, "member", "snap")
	if err := os.MkdirAll(snap, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(snap, "db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	etcdtest.StartIn(t, dir)
}

// After power failures and disk errors, data is recovered, or refused with an
// error that names it.
func TestHalfOfAStore(t *testing.T) {
	dir := written(t)
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v %v", logs, err)
	}
	db := filepath.Join(dir, "member", "snap", "db")
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	log, store := read(logs[0]), read(db)
	end := len(bytes.TrimRight(log, "\x00"))
	log = log[:end+4096] // the rest was allocated in advance
	broken := bytes.Clone(log)
	copy(broken[end/2:], "XXXXXXXXXXXX")
	for name, c := range map[string]struct {
		path  string
		left  []byte
		wants string
	}{
		"a database that is empty":     {db, nil, "is damaged"},
		"a database that is none":      {db, store[:100], "is damaged"},
		"half a database":              {db, store[:8192], "is damaged"},
		"a log with something else":    {logs[0], broken, "is damaged"},
		"a log without its last bytes": {logs[0], log[:end-5], ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(c.path, c.left, 0o600); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := os.WriteFile(logs[0], log, 0o600); err != nil {
					t.Error(err)
				}
				if err := os.WriteFile(db, store, 0o600); err != nil {
					t.Error(err)
				}
			}()
			embedded, err := etcd.StartEmbedded(t.Context(), dir, zap.NewNop())
			if err == nil {
				if answer, err := embedded.Client().Get(t.Context(), "key"); err != nil || len(answer.Kvs) != 1 {
					t.Errorf("the key is lost: %v", err)
				}
				if err := embedded.Stop(); err != nil {
					t.Error(err)
				}
			}
			if (err == nil) != (c.wants == "") || err != nil && (!strings.Contains(err.Error(), c.wants) || !strings.Contains(err.Error(), "restore the last backup")) {
				t.Errorf("got %v, want %q", err, c.wants)
			}
		})
	}
}

// A disk without room for etcd's log: the error says so, where etcd panics.
func TestNoRoomForAStore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=20m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if _, err := etcd.StartEmbedded(t.Context(), dir, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("on a small disk: %v", err)
	}
}
