package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kctl/kubectl/internal/cluster"
)

// Machine is a machine that is a node or is to be one.
type Machine struct {
	Runtime string // endpoint
	Start   string // how the runtime is started
	Install string // what else to do if there may be none
	Restart string // what to do when it hangs
	RootDir string // the kubelet's
	Port    int    // the kubelet's; 0 for none
	// Kubelet says that one runs here, so that its port is taken; KubeletHint is where
	// to look otherwise.
	Kubelet     bool
	KubeletHint string
	// NodeNetwork says that the kubelet makes the pods' network, by a
	// configuration in cluster.NetworkDir.
	NodeNetwork bool
	// Proc and CNI are where the kernel's settings and the network plugins are:
	// "/proc", and the directories of Debian and of upstream.
	Proc string
	CNI  []string
}

// NewMachine is this machine.
func NewMachine(runtime, rootDir string, port int) *Machine {
	return &Machine{
		Runtime: runtime,
		Start:   "`systemctl start containerd`",
		Install: ", or install one with CRI v1 (on Debian `apt install containerd`), or set its socket with --cri-socket",
		Restart: "restart it: `systemctl restart containerd`, and see `journalctl -u containerd`",
		RootDir: rootDir,
		Port:    port,
		Proc:    "/proc",
		CNI:     []string{"/usr/lib/cni", "/opt/cni/bin"},
	}
}

// answerWithin bounds what is asked of programs.
const answerWithin = 5 * time.Second

// Checks looks at the machine.
func (m *Machine) Checks(ctx context.Context) []Check {
	checks := []Check{checkRoot()}
	answers, network := m.checkRuntime(ctx)
	checks = append(checks, answers...)
	checks = append(checks, m.checkPlugins(network.Plugins), m.checkPort(), m.checkSwap(),
		m.checkSetting("ip-forward", "sys/net/ipv4/ip_forward", Fail,
			"`sysctl -w net.ipv4.ip_forward=1`, and the same in /etc/sysctl.d, or pods reach nothing beyond this machine"),
		m.checkSetting("bridge-nf", "sys/net/bridge/bridge-nf-call-iptables", Warn,
			"`modprobe br_netfilter && sysctl -w net.bridge.bridge-nf-call-iptables=1`, and the same in /etc/modules-load.d and /etc/sysctl.d, or "+
				"services and network policies don't hold between pods of one node"),
		m.checkOverlay(), m.checkDisk())
	return checks
}

// asRoot is what to do about what only root may.
const asRoot = "run it as root (sudo)"

func checkRoot() Check {
	if os.Geteuid() != 0 {
		return fail("root", asRoot, "not root")
	}
	return ok("root", "running as root")
}

// checkRuntime looks at the container runtime, and says where it looks for its network.
func (m *Machine) checkRuntime(ctx context.Context) ([]Check, cluster.RuntimeNetwork) {
	const name = "container-runtime"
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	state, err := cluster.RuntimeState(ctx, m.Runtime)
	if err != nil {
		return []Check{m.runtimeFault(name, err)}, cluster.RuntimeNetwork{}
	}
	return []Check{ok(name, "%s answers", m.Runtime), m.checkNetwork(state)}, state.Network
}

// runtimeFault says why the runtime did not answer.
func (m *Machine) runtimeFault(name string, err error) Check {
	switch {
	case errors.Is(err, syscall.ENOENT):
		// One that was stopped has removed it.
		return fail(name, "start it: "+m.Start+m.Install, "%s does not exist", cluster.SocketPath(m.Runtime))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(name, "start it: "+m.Start, "nothing listens on %s", cluster.SocketPath(m.Runtime))
	case errors.Is(err, context.DeadlineExceeded):
		return fail(name, m.Restart, "no answer within %s from %s", answerWithin, m.Runtime)
	case errors.Is(err, syscall.EACCES):
		return fail(name, asRoot, "this user has no access to %s", cluster.SocketPath(m.Runtime))
	}
	return fail(name, "check that the runtime's CRI plugin is enabled (disabled_plugins in /etc/containerd/config.toml) and supports CRI v1",
		"%v", err)
}

// checkNetwork says whether pods have a network. If the kubelet makes it, it comes
// later, provided that the runtime reads what the kubelet writes.
func (m *Machine) checkNetwork(state cluster.Runtime) Check {
	const name = "pod-network"
	read := cmp.Or(state.Network.Config, cluster.NetworkDir)
	switch {
	case m.NodeNetwork && filepath.Clean(read) != cluster.NetworkDir:
		return fail(name, "set `conf_dir` to "+cluster.NetworkDir+cniSection,
			"the runtime reads network configurations from %s, but the kubelet writes its own to %s", read, cluster.NetworkDir)
	case m.NodeNetwork:
		return ok(name, "the kubelet will create it")
	case state.NotReady != nil:
		return warn(name, "put a network configuration into "+read+"; pods wait until there is one", "%v", state.NotReady)
	}
	return ok(name, "the runtime has a network for pods")
}

// cniSection is the section of containerd's configuration about networks.
const cniSection = " in the section of /etc/containerd/config.toml that ends in `.cni]`, and `systemctl restart containerd`"

// checkPlugins looks for the network plugins where the runtime looks for them.
func (m *Machine) checkPlugins(told []string) Check {
	const name = "cni-plugins"
	sought := told
	if len(told) == 0 {
		sought = m.CNI
	}
	if dir := withPlugins(sought); dir != "" {
		return ok(name, "in %s", dir)
	}
	where := strings.Join(sought, " or ")
	if there := withPlugins(m.CNI); there != "" {
		return fail(name, "set `bin_dir` (containerd 2: `bin_dirs`) to "+there+cniSection, "they are in %s, but the runtime looks for them in %s",
			there, where)
	}
	return fail(name, "install them (on Debian `apt install containernetworking-plugins`)", "no loopback plugin in %s", where)
}

// withPlugins is the first of the directories that has network plugins.
func withPlugins(dirs []string) string {
	for _, dir := range dirs {
		if info, err := os.Stat(filepath.Join(dir, "loopback")); err == nil && info.Mode()&0o111 != 0 {
			return dir
		}
	}
	return ""
}

func (m *Machine) checkPort() Check {
	const name = "kubelet-port"
	if m.Port == 0 {
		return ok(name, "this node's kubelet was never started from here")
	}
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(m.Port))
	switch {
	case m.Kubelet && err != nil:
		return ok(name, "used by this node's kubelet")
	case m.Kubelet:
		listener.Close()
		return fail(name, m.KubeletHint, "nothing listens on port %d: this node's kubelet is not running", m.Port)
	case err != nil:
		return fail(name, "find out which program uses it (`ss -ltnp 'sport = :"+strconv.Itoa(m.Port)+
			"'`): if it is a kubelet of another cluster, remove that first", "port %d is taken", m.Port)
	}
	listener.Close()
	return ok(name, "%d is free", m.Port)
}

func (m *Machine) checkSwap() Check {
	data, err := os.ReadFile(filepath.Join(m.Proc, "swaps"))
	if err == nil && bytes.Count(bytes.TrimSpace(data), []byte("\n")) > 0 {
		return warn("swap", "run `swapoff -a` and remove swap from /etc/fstab; otherwise pods' memory may be swapped to disk", "swap is on")
	}
	return ok("swap", "off")
}

func (m *Machine) checkSetting(name, file string, otherwise Result, advice string) Check {
	data, err := os.ReadFile(filepath.Join(m.Proc, file))
	if err == nil && strings.TrimSpace(string(data)) == "1" {
		return ok(name, "on")
	}
	detail := "off"
	if err != nil {
		detail = "the kernel does not have it"
	}
	return Check{name, otherwise, detail, advice}
}

func (m *Machine) checkOverlay() Check {
	data, err := os.ReadFile(filepath.Join(m.Proc, "filesystems"))
	if err == nil && !bytes.Contains(data, []byte("\toverlay\n")) {
		return warn("overlay", "run `modprobe overlay`, and add overlay to /etc/modules-load.d",
			"the kernel module overlay, which is needed to unpack images, is not loaded")
	}
	return ok("overlay", "supported by the kernel")
}

// How little may be left of the disk with the kubelet's directory.
const (
	leastFree = 1 << 30
	lowFree   = 0.10 // where kubelets begin to evict
)

func (m *Machine) checkDisk() Check {
	dir := m.RootDir
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fail("disk", "", "%s: %v", dir, err)
	}
	free, part := fs.Bavail*uint64(fs.Bsize), float64(fs.Bavail)/float64(max(fs.Blocks, 1))
	const advice = "make room, or put the directory on another disk"
	switch {
	case free < leastFree:
		return fail("disk", advice, "%d MiB are free for %s", free>>20, m.RootDir)
	case part < lowFree:
		return warn("disk", advice+": kubelets evict pods when less than 10% is free, unless their --eviction-hard says otherwise",
			"%d GiB, %.0f%%, are free for %s", free>>30, part*100, m.RootDir)
	case fs.Files > 0 && float64(fs.Ffree)/float64(fs.Files) < 0.05:
		return warn("disk", "remove files: kubelets evict pods when less than 5% of the inodes are free",
			"%d inodes are free for %s", fs.Ffree, m.RootDir)
	}
	return ok("disk", "%d GiB, %.0f%%, are free for %s", free>>30, part*100, m.RootDir)
}
