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
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kctl/proto/core"
)

// SocketPath is the file of a runtime's endpoint.
func SocketPath(endpoint string) string { return strings.TrimPrefix(endpoint, "unix://") }

// Runtime is what a container runtime says about itself.
type Runtime struct {
	NotReady error // why it can't run pods yet, as one without a network
	Network  RuntimeNetwork
}

// RuntimeState asks the container runtime at an endpoint.
func RuntimeState(ctx context.Context, endpoint string) (state Runtime, err error) {
	runtime := runtimeAt(SocketPath(endpoint))
	defer runtime.close()
	if err = runtime.notReady(ctx); errors.Is(err, errNotReady) {
		state.NotReady, err = err, nil
	}
	if err == nil {
		state.Network, err = runtime.network(ctx)
	}
	return state, err
}

// RemoveNode removes what a kubelet made on this machine: the pods in its
// runtime, their control groups, the node's network, and the kubelet's directory
// with what is mounted there.
func RemoveNode(ctx context.Context, endpoint, rootDir string) error {
	groups, err := podGroups()
	if err != nil {
		return err
	}
	if _, err := removeSandboxes(ctx, SocketPath(endpoint), func() error { return killInCgroups(groups) }); err != nil {
		return err
	}
	if err := errors.Join(removePodGroups(ctx, groups), removeNodeNetwork(ctx)); err != nil {
		return err
	}
	l := Layout{Dir: rootDir}
	if err := errors.Join(l.unmount(anyMount), l.checkUnmounted()); err != nil {
		return err
	}
	return RemoveKubeletDir(rootDir)
}

// RemoveKubeletDir removes the certificates last: by them, another reset knows what one that
// was cut short has left of the directory. A link to it stays, as does a place where
// something is mounted: they are somebody's own.
func RemoveKubeletDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != "pki" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, "pki")); err != nil {
		return err
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// podsSlice holds the pods where systemd manages control groups.
const podsSlice = "kubepods.slice"

// podGroups are the control groups of all pods, by either driver.
func podGroups() ([]string, error) {
	directories, err := cgroupsNamed("/kubepods")
	if err != nil {
		return nil, err
	}
	slices, err := cgroupsNamed("/" + podsSlice)
	return append(directories, slices...), err
}

// removePodGroups removes groups that are empty by now, as soon as the kernel
// has noticed.
func removePodGroups(ctx context.Context, groups []string) error {
	if exec.CommandContext(ctx, "systemctl", "is-active", "--quiet", podsSlice).Run() == nil {
		if err := runCommand(ctx, "systemctl", "stop", podsSlice); err != nil { // with all slices in it
			return err
		}
	}
	return untilDone(ctx, 5*time.Second, func() error { return removeTrees(groups) })
}

const (
	// NetworkDir is where runtimes look for their network, and kubelets put theirs.
	NetworkDir = "/etc/cni/net.d"
	// leases has a directory for each network with the addresses that are in use.
	leases = "/var/lib/cni/networks"
)

// removeNodeNetwork removes what a kubelet made for --node-network.
func removeNodeNetwork(ctx context.Context) error {
	var errs []error
	if err := os.Remove(filepath.Join(NetworkDir, core.NodeNetworkConfig)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	errs = append(errs, os.RemoveAll(filepath.Join(leases, core.NodeNetworkName)))
	if _, err := exec.LookPath("ip"); err == nil {
		for _, family := range []string{"-4", "-6"} {
			errs = append(errs, runCommand(ctx, "ip", family, "route", "flush", "proto", strconv.Itoa(core.NodeNetworkRoutes)))
		}
	}
	for _, link := range []string{core.NodeNetworkVXLAN, core.NodeNetworkBridge} {
		if _, err := net.InterfaceByName(link); err == nil {
			errs = append(errs, runCommand(ctx, "ip", "link", "delete", link))
		}
	}
	for _, program := range []string{"iptables", "ip6tables"} {
		errs = append(errs, removeChain(ctx, program, "nat", core.NodeNetworkMasquerade),
			removeChain(ctx, program, "filter", core.NodeNetworkForward),
			removeChain(ctx, program, "mangle", core.NodeNetworkLoopback),
			removeChain(ctx, program, "mangle", core.NodeNetworkOverlay),
			removeChain(ctx, program, "mangle", core.NodeNetworkSource))
	}
	return errors.Join(errs...)
}

// removeChain removes a chain and the rules that lead to it.
func removeChain(ctx context.Context, program, table, chain string) error {
	rules, err := exec.CommandContext(ctx, program, "-w", "-t", table, "-S").Output()
	if err != nil || !strings.Contains(string(rules), "-N "+chain+"\n") {
		return nil // there is none, or no such program
	}
	var errs []error
	for rule := range strings.Lines(string(rules)) {
		rule = strings.TrimSpace(rule)
		if !strings.HasPrefix(rule, "-A ") || jumpTarget(rule) != chain {
			continue
		}
		args, err := splitFlags(strings.TrimPrefix(rule, "-A "))
		if err != nil {
			return err
		}
		errs = append(errs, runCommand(ctx, program, append([]string{"-w", "-t", table, "-D"}, args...)...))
	}
	return errors.Join(append(errs,
		runCommand(ctx, program, "-w", "-t", table, "-F", chain),
		runCommand(ctx, program, "-w", "-t", table, "-X", chain))...)
}
