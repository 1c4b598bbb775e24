package critest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// Reboot removes what a machine loses in a power failure: all processes,
// mounts, links, control groups, and what is in memory. Then the daemon starts
// again with what is on disk.
func (c *Containerd) Reboot(t testing.TB) {
	t.Helper()
	_ = c.process.Process.Kill()
	<-c.exited
	c.process = nil
	if err := c.cutPower(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"state", "runc"} {
		if err := os.RemoveAll(filepath.Join(c.Dir, dir)); err != nil {
			t.Error(err)
		}
	}
	c.Up(t)
}

// takeAwayAbandoned removes what a killed test left in dir and on the machine:
// its daemon and its pods still run.
func takeAwayAbandoned(dir string) error {
	c := newContainerd(dir)
	if err := c.cutPower(); err != nil {
		return err // RemoveAll would empty what is still mounted
	}
	return os.RemoveAll(dir)
}

// cutPower kills all processes of the containerd, itself included, and removes
// its state in the kernel.
func (c *Containerd) cutPower() error {
	groups := c.cgroups()
	patience := time.After(shimTimeout)
	tick := time.NewTicker(10 * time.Millisecond) // only a parent is notified when a process ends
	defer tick.Stop()
	for {
		pids := c.family()
		if len(pids) == 0 {
			return c.clear(groups)
		}
		for _, pid := range pids {
			groups = append(groups, containerGroups(pid)...)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		select {
		case <-patience:
			return fmt.Errorf("processes of %s can't be ended: %v", c.Dir, pids)
		case <-tick.C:
		}
	}
}

// family are the live processes of the daemon, its shims and the pods: those
// below a shim, and those in the test's control groups.
func (c *Containerd) family() []int {
	var pids []int
	for pid := range c.processes() {
		pids = append(pids, pid)
	}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children(pids[i])...)
	}
	for _, dir := range c.cgroups() {
		inside, _ := cgroups.GetAllPids(dir) // none, if the group is gone
		for _, pid := range inside {
			if pid > 0 { // 0: in another PID namespace
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// containerGroups are the control groups that a runtime made for a process's
// container, named by the container's id. If no kubelet says where, they are in
// k8s.io, beside those of others.
func containerGroups(pid int) []string {
	var groups []string
	lines, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)) // empty, if the process has ended
	for line := range strings.Lines(string(lines)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "/k8s.io/") {
			continue
		}
		for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			found, _ := filepath.Glob(pattern + fields[2])
			groups = append(groups, found...)
		}
	}
	return groups
}

// children are the child processes of a process.
func children(parent int) []int {
	var pids []int
	statuses, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range statuses {
		status, _ := os.ReadFile(path) // empty, if the process has ended
		if strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) && !strings.Contains(string(status), "\nState:\tZ") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// clear removes what a stopped containerd has in the kernel: its mounts, its
// bridge and its control groups.
func (c *Containerd) clear(groups []string) error {
	var errs []error
	for _, point := range c.mounts() {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmounting %s: %w", point, err))
		}
	}
	if _, err := os.Stat(filepath.Join("/sys/class/net", c.Bridge)); err == nil {
		if out, err := exec.Command("ip", "link", "delete", c.Bridge).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("deleting bridge %s: %w: %s", c.Bridge, err, out))
		}
	}
	for _, dir := range groups {
		// A group can be removed only by rmdir, and only when no process is in it.
		if err := cgroups.RemovePath(dir); err != nil {
			errs = append(errs, fmt.Errorf("removing control group %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}
