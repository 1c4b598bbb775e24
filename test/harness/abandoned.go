package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kctl/proto/leftover"
)

const prefix = "kctl-"

// holdDir makes a directory for a cluster or a server, and first takes away what
// tests left behind that were killed, by ^C or a time limit: clusters go on then.
// It is not t.TempDir, whose paths are too long for sockets, and whose removal
// must not come before the mounts below it are gone.
func holdDir(t testing.TB, bin string) (dir string, release func()) {
	t.Helper()
	err := leftover.Sweep(os.TempDir(), prefix, func(dir string) error { return takeAwayAbandoned(bin, dir) })
	if err != nil {
		t.Log(err) // the next test tries again
	}
	if dir, release, err = leftover.Hold(os.TempDir(), prefix); err != nil {
		t.Fatal(err)
	}
	return dir, release
}

// takeAwayAbandoned has kctl take a cluster down that nobody holds any more, or
// ends what else runs in the directory.
func takeAwayAbandoned(bin, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "cluster.json")); !errors.Is(err, fs.ErrNotExist) {
		if out, err := exec.Command(filepath.Join(bin, "kctl"), "down", "--dir", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("kctl down: %w: %s", err, out)
		}
	}
	patience := time.After(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond) // the kernel tells of ends nobody but parents
	defer tick.Stop()
	for {
		pids := processesOf(dir)
		if len(pids) == 0 {
			return os.RemoveAll(dir)
		}
		for pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-patience:
			return fmt.Errorf("processes can't be ended: %v", pids)
		case <-tick.C:
		}
	}
}
