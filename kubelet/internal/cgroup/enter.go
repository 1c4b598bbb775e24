package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
)

// telling are the hierarchies that tell which group a process is in: cgroup v2's one, and
// some of v1.
var telling = []string{"", "name=systemd", "memory"}

// Enter puts this process into a group, which is made if missing. If systemd, or
// whatever started the process, has put it there already, nothing changes.
func Enter(group string) error {
	group = path.Join("/", group)
	of, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		return fmt.Errorf("control groups of the kubelet: %w", err)
	}
	if slices.ContainsFunc(telling, func(hierarchy string) bool { return of[hierarchy] == group }) {
		return nil
	}
	g, err := groupManager(group)
	if err != nil {
		return fmt.Errorf("control group of the kubelet: %w", err)
	}
	if err := g.Apply(os.Getpid()); err != nil {
		return fmt.Errorf("moving the kubelet into its control group: %w", err)
	}
	return nil
}

// gatherRounds bounds how often Gather looks for processes that began meanwhile.
const gatherRounds = 10

// Gather puts all processes of the root group into a group, which is made if missing, but
// for init and the kernel's threads.
func Gather(group string) error {
	g, err := groupManager(path.Join("/", group))
	if err != nil {
		return fmt.Errorf("control group of the system: %w", err)
	}
	var failed error
	for range gatherRounds {
		pids, err := processesInRoot("/proc")
		if err != nil {
			return fmt.Errorf("processes of the root control group: %w", err)
		}
		if len(pids) == 0 {
			return nil
		}
		failed = nil
		for _, pid := range pids {
			if err := g.Apply(pid); err != nil {
				failed = fmt.Errorf("moving process %d into the control group of the system: %w", pid, err)
			}
		}
	}
	return failed
}

func groupManager(group string) (cgroups.Manager, error) {
	return manager.New(&cgroups.Cgroup{Path: group, Resources: &cgroups.Resources{SkipDevices: true}})
}

// processesInRoot are those that are in the root group, but for init and the kernel's
// threads.
func processesInRoot(proc string) ([]int, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == 1 {
			continue
		}
		of, err := cgroups.ParseCgroupFile(path.Join(proc, entry.Name(), "cgroup"))
		if err != nil || !inRoot(of) { // it may have ended
			continue
		}
		// Threads of the kernel have no program.
		if _, err := os.Readlink(path.Join(proc, entry.Name(), "exe")); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, pid)
		}
	}
	return found, nil
}

func inRoot(of map[string]string) bool {
	for _, hierarchy := range telling {
		if in, ok := of[hierarchy]; ok && in != "/" {
			return false
		}
	}
	return true
}
