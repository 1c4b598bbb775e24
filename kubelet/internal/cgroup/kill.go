package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// killAttempts is how often Destroy kills what is left in a group: processes
// may fork while they are listed.
const killAttempts = 5

// errForeign is about processes that the kernel shows as 0: to kill(2) that would be the
// kubelet, and all that was started with it.
var errForeign = errors.New("the cgroup has processes of another PID namespace, possibly of another kubelet")

// kill ends all processes in a group and below it.
func kill(g cgroups.Manager) error {
	for range killAttempts {
		left := processes(g.GetPaths())
		if left[0] {
			return errForeign
		}
		if len(left) == 0 {
			return nil
		}
		for pid := range left {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("ending process %d: %w", pid, err)
			}
		}
	}
	return nil // the kernel is still ending processes; removing waits for that, and fails if it must
}

// processes are those in the groups and below them.
func processes(groups map[string]string) map[int]bool {
	found := map[int]bool{}
	for _, dir := range groups {
		// Dirs that are not there have no processes.
		_ = filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return nil
			}
			pids, err := cgroups.GetPids(at)
			if err != nil {
				return nil
			}
			for _, pid := range pids {
				found[pid] = true
			}
			return nil
		})
	}
	return found
}
