package critest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"kctl/proto/mountinfo"
)

// end removes everything, in the order of dependencies, and fails the test if
// something stays. It always goes through to the end.
func (c *Containerd) end(t testing.TB) {
	if t.Failed() {
		t.Logf("containerd's log:\n%s", tail(c.log(), 40))
	}
	if c.process != nil {
		if err := c.removeSandboxes(t); err != nil {
			t.Errorf("removing sandboxes: %v", err)
		}
	}
	if c.client != nil {
		_ = c.client.Close()
	}
	c.Down(t)
	for pid, line := range c.processesLeft() {
		if strings.Contains(line, "containerd-shim") && len(children(pid)) == 0 {
			// containerd 1.6 does so when a client goes away while a shim starts.
			t.Logf("containerd forgot an empty shim: %s", line)
		} else {
			t.Errorf("a process of the test's containerd is left: %d %s", pid, line)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	if err := errors.Join(c.clear(c.cgroups()), os.RemoveAll(c.Dir)); err != nil {
		t.Error(err)
	}
}

// removeSandboxes stops and removes all sandboxes, retrying until it works or
// time is up: a container whose start was cancelled may take a moment to end.
func (c *Containerd) removeSandboxes(t testing.TB) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sandboxes, err := c.client.ListPodSandbox(ctx, nil)
	if err != nil {
		return err
	}
	for _, s := range sandboxes {
		if err := again(func() error { return c.client.StopPodSandbox(ctx, s.GetId()) }); err != nil {
			t.Logf("stopping sandbox: %v", err)
		}
	}
	forgot := c.killForgotten(t)
	var failed []error
	for _, s := range sandboxes {
		err := again(func() error { return c.client.RemovePodSandbox(ctx, s.GetId()) })
		if forgot && err != nil && strings.Contains(err.Error(), "cannot delete running task") {
			t.Logf("containerd believes that a process runs which it forgot, and which was killed: %v", err)
			continue
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// killForgotten ends the processes of containers that containerd believes to
// have ended: version 1.6 does so when a client goes away while one starts. No
// CRI call ends them. It returns whether there were any.
func (c *Containerd) killForgotten(t testing.TB) (some bool) {
	for _, dir := range c.cgroups() {
		pids, _ := cgroups.GetAllPids(dir) // none, if the group is gone
		for _, pid := range pids {
			if pid <= 0 {
				continue // of another PID namespace
			}
			t.Logf("containerd forgot process %d of a container", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
			some = true
		}
	}
	return some
}

func again(do func() error) error {
	patience := time.After(shimTimeout)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-patience:
			return err
		case <-tick.C:
		}
	}
}

// processesLeft waits for shims, which end a moment after their container, and
// returns those that stay.
func (c *Containerd) processesLeft() map[int]string {
	patience := time.After(shimTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left := c.processes()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-patience:
			return left
		case <-tick.C:
		}
	}
}

// processes are the processes, by pid, with the test's directory on their
// command line: shims that outlived their containers.
func (c *Containerd) processes() map[int]string {
	left := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if bytes.Contains(line, []byte(c.Dir+"/")) {
			left[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
	return left
}

// cgroups are the directories of the test's group, one per hierarchy.
func (c *Containerd) cgroups() []string {
	if cgroups.IsCgroup2UnifiedMode() {
		return []string{filepath.Join("/sys/fs/cgroup", c.CgroupRoot)}
	}
	found, _ := filepath.Glob("/sys/fs/cgroup/*" + c.CgroupRoot)
	return found
}

// mounts are the mount points below the test's directory and it, newest first.
func (c *Containerd) mounts() []string {
	table, err := mountinfo.Read()
	if err != nil {
		return nil
	}
	return table.Below(c.Dir)
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, "plugin") || len(line) > 1000 // its start, and its configuration
	})
	if len(lines) > n {
		lines = append([]string{fmt.Sprintf("… %d lines before", len(lines)-n)}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}
