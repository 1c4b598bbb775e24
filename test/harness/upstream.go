package harness

import (
	"os"
	"path/filepath"
	"testing"
)

// Upstream is the folder of upstream's programs that `make upstream` builds. A
// test that needs a missing one is skipped, as are short runs.
func Upstream(t testing.TB, programs ...string) string {
	t.Helper()
	NeedLong(t, "it needs programs of upstream's")
	dir := filepath.Join(Bin(t), "upstream")
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			t.Skipf("skipped: %v: run `make upstream` first, which takes its time", err)
		}
	}
	return dir
}
