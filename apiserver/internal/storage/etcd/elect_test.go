package etcd_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// A server that was killed has up to thousands of writes to apply again, and
// drops some of them from its log, before it may elect itself. It must start
// with any number of them. Told too early, it panics in one start in some
// dozens.
func TestElectsItselfAfterAnyCrash(t *testing.T) {
	dir := t.TempDir()
	_, embedded := etcdtest.StartIn(t, dir)
	crashed := make([]string, 4)
	for i := range crashed {
		for range 200 + rand.IntN(800) {
			if _, err := embedded.Client().Put(t.Context(), "key", strings.Repeat("x", rand.IntN(200))); err != nil {
				t.Fatal(err)
			}
		}
		crashed[i] = copied(t, dir)
	}
	for range 3 {
		for _, crash := range crashed {
			dir := copied(t, crash)
			again, err := etcd.StartEmbedded(t.Context(), dir, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(again.Stop(), os.RemoveAll(dir)); err != nil { // the log is large
				t.Fatal(err)
			}
		}
	}
}

// copied is a copy of a data directory as it is on disk, made while the
// database does not change.
func copied(t *testing.T, dir string) string {
	t.Helper()
	database := filepath.Join(dir, "member", "snap", "db")
	for {
		before, err := os.ReadFile(database)
		if err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if err := os.CopyFS(filepath.Join(to, "member"), os.DirFS(filepath.Join(dir, "member"))); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(database)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before, after) {
			return to
		}
	}
}
