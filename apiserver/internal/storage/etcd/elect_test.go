package etcd_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// A server that was killed has up to thousands of writes to take up again, and
// drops some of them from its log, before it may elect itself: at any number of them
// it starts. Told too early, one start in some dozens panics.
func TestElectsItselfAfterAnyCrash(t *testing.T) {
	rounds := 2
	if os.Getenv("KCTL_LONG") != "" {
		rounds = 100
	}
	dir := t.TempDir()
	_, embedded := etcdtest.StartIn(t, dir)
	crashed := make([]string, 6)
	for i := range crashed {
		for range 150 + rand.IntN(600) {
			if _, err := embedded.Client().Put(t.Context(), "key", strings.Repeat("x", rand.IntN(200))); err != nil {
				t.Fatal(err)
			}
		}
		crashed[i] = copied(t, dir)
	}
	for range rounds {
		for _, crash := range crashed {
			again, err := etcd.StartEmbedded(t.Context(), copied(t, crash), zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// copied is a copy of what a data directory has on disk now.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "member"), os.DirFS(filepath.Join(dir, "member"))); err != nil {
		t.Fatal(err)
	}
	return to
}
