package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// namespacesDir is where network namespaces have their names, as ip-netns(8) and
// container runtimes agree.
const namespacesDir = "/run/netns"

// shareNamespaces makes a directory a mount of its own that mount namespaces
// share, as ip-netns(8) does with the first namespace that it adds: done later,
// over namespaces that are there, it would hide the files under which a runtime
// made them, and nobody could remove those any more. It stays for whoever adds
// namespaces next.
func shareNamespaces(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err := unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // no mount yet
		if err = unix.Mount(dir, dir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("share %s: %w", dir, err)
	}
	return nil
}

// removeNamespaces removes the network namespaces of sandboxes that the
// runtime has forgotten: one that is killed while it makes a sandbox leaves
// them. Ours have an address of the cluster's subnet; one that has no link yet
// is ours if no other runtime is there to be making it.
func (l Layout) removeNamespaces(ctx context.Context) error {
	s, err := loadSettings(l)
	if err != nil {
		return err
	}
	subnet, err := netip.ParsePrefix(s.PodCIDR)
	if err != nil {
		return fmt.Errorf("pod subnet: %w", err)
	}
	files, err := filepath.Glob(namespacesDir + "/cni-*")
	if err != nil || len(files) == 0 {
		return err
	}
	alone, err := l.onlyRuntime()
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		name := filepath.Base(file)
		ours, bare := inspectNamespace(ctx, name, subnet)
		if ours || bare && alone {
			errs = append(errs, command(ctx, "ip", "netns", "delete", name))
		}
	}
	return errors.Join(errs...)
}

// inspectNamespace says whether a namespace has an address in subnet, and
// whether it has no link but its loopback. One that goes meanwhile is neither.
func inspectNamespace(ctx context.Context, name string, subnet netip.Prefix) (ours, bare bool) {
	addresses, err := exec.CommandContext(ctx, "ip", "-n", name, "-o", "-4", "addr", "show").Output()
	if err != nil {
		return false, false
	}
	for field := range strings.FieldsSeq(string(addresses)) {
		if p, err := netip.ParsePrefix(field); err == nil && subnet.Contains(p.Addr()) {
			return true, false
		}
	}
	links, err := exec.CommandContext(ctx, "ip", "-n", name, "-o", "link", "show").Output()
	return false, err == nil && bytes.Count(links, []byte("\n")) == 1
}

// onlyRuntime says whether no container runtime but this cluster's runs.
func (l Layout) onlyRuntime() (bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || l.owns(pid) {
			continue
		}
		proc := filepath.Join("/proc", e.Name())
		comm, _ := os.ReadFile(filepath.Join(proc, "comm"))
		cmdline, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		switch strings.TrimSpace(string(comm)) {
		case "containerd", "crio", "podman", "dockerd":
			if len(cmdline) > 0 { // a zombie has none
				return false, nil
			}
		}
	}
	return true, nil
}
