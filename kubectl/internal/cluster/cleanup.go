package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// removePods makes containerd stop and remove every sandbox, and with it the
// containers, network namespaces and rules. A containerd that has died is
// started once more for that.
func (l Layout) removePods(ctx context.Context) (string, error) {
	if _, err := os.Stat(l.path("containerd.toml")); errors.Is(err, fs.ErrNotExist) {
		return "none", nil // never had a runtime
	}
	_, err := l.start(ctx, program{
		name: Containerd, path: "containerd", args: []string{"--config", l.path("containerd.toml")}, ready: l.runtimeAnswers,
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("%w; if the runtime can't start any more, remove %s, and \"kctl down\" will not need it",
			err, l.path("containerd.toml"))
	}
	// In between come processes that the runtime forgot: containerd 1.6 believes
	// that a container has ended if the kubelet goes away while it starts.
	count, err := removeSandboxes(ctx, l.Socket(), l.killPodProcesses)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d removed", count), nil
}

// How long a runtime may take to end pods, so that down and reset end even if it
// hangs. A pod takes about a quarter of a second on two cores, more if these are
// busy.
const (
	cleanupTimeout = 2 * time.Minute
	sandboxTimeout = 2 * time.Second
)

// removeSandboxes stops and removes every sandbox of the runtime at a socket.
func removeSandboxes(ctx context.Context, socket string, between func() error) (int, error) {
	runtime := runtimeAt(socket)
	defer runtime.close()
	asked, cancel := context.WithTimeout(ctx, cleanupTimeout)
	list, err := runtime.sandboxes(asked)
	cancel()
	if err != nil {
		return 0, fmt.Errorf("list sandboxes: %w", err)
	}
	ctx, cancel = context.WithTimeout(ctx, cleanupTimeout+time.Duration(len(list))*sandboxTimeout)
	defer cancel()
	stopped := forEachSandbox(list, func(s sandbox) error { return runtime.endSandbox(ctx, "StopPodSandbox", s.id) })
	killed := between()
	removed := forEachSandbox(list, func(s sandbox) error {
		return untilDone(ctx, stopGrace, func() error { return runtime.endSandbox(ctx, "RemovePodSandbox", s.id) })
	})
	if removed != nil {
		return 0, errors.Join(stopped, killed, removed)
	}
	return len(list), nil
}

// forEachSandbox calls do for all sandboxes, several at a time, even if some
// fail.
func forEachSandbox(sandboxes []sandbox, do func(sandbox) error) error {
	var group errgroup.Group
	group.SetLimit(16)
	errs := make([]error, len(sandboxes))
	for i, s := range sandboxes {
		group.Go(func() error {
			if err := do(s); err != nil {
				errs[i] = fmt.Errorf("sandbox of %s/%s: %w", s.namespace, s.name, err)
			}
			return nil
		})
	}
	_ = group.Wait() // each error is in errs
	return errors.Join(errs...)
}

// untilDone tries again until it succeeds, patience runs out or ctx ends, and
// returns the last error.
func untilDone(ctx context.Context, patience time.Duration, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func (l Layout) runtimeAnswers(ctx context.Context) error {
	runtime := l.runtime()
	defer runtime.close()
	return runtime.version(ctx)
}

// cleanMachine removes what the programs made outside the directory and could
// not remove themselves.
func (l Layout) cleanMachine(ctx context.Context) error {
	return errors.Join(
		l.killPodProcesses(), // of pods that the runtime has not ended
		l.killLeftovers(ctx),
		l.unmount(mountedByPrograms),
		l.removeBridge(ctx),
		l.removeRules(ctx),
		untilDone(ctx, stopGrace, l.removeCgroups), // a process takes a moment to end
	)
}

// killLeftovers ends processes of the cluster that have no PID file: shims of
// pods that the runtime forgot. Their command lines name the cluster's socket.
func (l Layout) killLeftovers(ctx context.Context) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !l.ownsProcess(pid) {
			continue
		}
		comm, err := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if err != nil || !strings.HasPrefix(string(comm), "containerd-shim") {
			continue // a user's editor on a file below the directory, say
		}
		errs = append(errs, terminate(ctx, pid, time.Second))
	}
	return errors.Join(errs...)
}

func (l Layout) removeBridge(ctx context.Context) error {
	if _, err := net.InterfaceByName(l.Bridge()); err != nil {
		return nil // there is none
	}
	return runCommand(ctx, "ip", "link", "delete", l.Bridge())
}

// killPodProcesses ends every process in the cluster's cgroups.
func (l Layout) killPodProcesses() error {
	roots, err := cgroupsNamed(l.CgroupRoot())
	if err != nil {
		return err
	}
	return killInCgroups(roots)
}

// killInCgroups ends every process in cgroups and those below them.
func killInCgroups(roots []string) error {
	var errs []error
	for _, root := range roots {
		for _, dir := range cgroupTree(root) {
			pids, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // of a group that is gone, none
			for field := range strings.FieldsSeq(string(pids)) {
				pid, err := strconv.Atoi(field)
				if err != nil || pid <= 0 { // 0: a process of another PID namespace
					continue
				}
				if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
					errs = append(errs, fmt.Errorf("end process %d of a pod: %w", pid, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// removeCgroups removes the cluster's cgroups, which are empty by now.
func (l Layout) removeCgroups() error {
	roots, err := cgroupsNamed(l.CgroupRoot())
	if err != nil {
		return err
	}
	return removeTrees(roots)
}

// removeTrees removes cgroups and those below them.
func removeTrees(roots []string) error {
	var errs []error
	for _, root := range roots {
		for _, dir := range slices.Backward(cgroupTree(root)) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("remove cgroup: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

// cgroupsNamed are the cgroups of one name, in every hierarchy of either
// version.
func cgroupsNamed(name string) ([]string, error) {
	var roots []string
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		found, err := filepath.Glob(pattern + name)
		if err != nil {
			return nil, err
		}
		roots = append(roots, found...)
	}
	return roots, nil
}

// cgroupTree lists a group and those below it, parents first. One that
// disappears meanwhile is fine.
func cgroupTree(root string) []string {
	var dirs []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

func runCommand(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
