package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kctl/kubectl/internal/cluster"
)

func TestMachines(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	m := &Machine{
		Runtime: "unix://" + filepath.Join(dir, "containerd.sock"),
		RootDir: filepath.Join(dir, "a", "b"),
		Port:    taken.Addr().(*net.TCPAddr).Port,
		Proc:    dir,
		CNI:     []string{filepath.Join(dir, "cni")},
	}
	write("swaps", "Filename Type\n/dev/sda partition\n")
	write("sys/net/ipv4/ip_forward", "0\n")
	write("filesystems", "nodev\tproc\n")
	checks := m.Checks(t.Context())
	for name, want := range map[string]Result{"container-runtime": Fail, "cni-plugins": Fail, "kubelet-port": Fail, "swap": Warn, "ip-forward": Fail,
		"bridge-nf": Warn, "overlay": Warn} {
		if got := find(t, checks, name); got.Result != want || got.Advice == "" {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	find(t, checks, "disk")
	write("swaps", "Filename Type\n")
	write("sys/net/ipv4/ip_forward", "1\n")
	write("sys/net/bridge/bridge-nf-call-iptables", "1\n")
	write("filesystems", "nodev\toverlay\n")
	write("cni/loopback", "")
	m.Kubelet = true
	checks = m.Checks(t.Context())
	for _, name := range []string{"cni-plugins", "kubelet-port", "swap", "ip-forward", "bridge-nf", "overlay"} {
		if got := find(t, checks, name); got.Result != OK {
			t.Errorf("%+v", got)
		}
	}
	taken.Close()
	m.KubeletHint = "wake it"
	if got := m.checkPort(); got.Result != Fail || !strings.Contains(got.Detail, "nothing listens on port ") || got.Advice != "wake it" {
		t.Errorf("a node whose kubelet does not run: %+v", got)
	}
	// A socket on which nobody listens any more, and one that never answers.
	listener, err := net.Listen("unix", filepath.Join(dir, "containerd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	m.Restart = "kick it"
	if got := find(t, m.Checks(ctx), "container-runtime"); got.Result != Fail || !strings.Contains(got.Detail, "no answer within") || got.Advice != "kick it" {
		t.Errorf("got %+v", got)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	if got := find(t, m.Checks(t.Context()), "container-runtime"); got.Result != Fail || !strings.Contains(got.Detail, "nothing listens") {
		t.Errorf("got %+v", got)
	}
}

// Network plugins and their configuration must be where the runtime looks for
// them.
func TestNetworksOfRuntimes(t *testing.T) {
	dir := t.TempDir()
	there, elsewhere := filepath.Join(dir, "there"), filepath.Join(dir, "elsewhere")
	if err := errors.Join(os.Mkdir(there, 0o755), os.WriteFile(filepath.Join(there, "loopback"), nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	m := &Machine{CNI: []string{filepath.Join(dir, "none"), there}}
	for told, want := range map[string]Check{
		"":    ok("cni-plugins", "in %s", there),
		there: ok("cni-plugins", "in %s", there),
		elsewhere: fail("cni-plugins", "set `bin_dir` (containerd 2: `bin_dirs`) to "+there+cniSection, "they are in %s, but the runtime looks for them in %s",
			there, elsewhere),
	} {
		if got := m.checkPlugins(strings.Fields(told)); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	m.CNI = m.CNI[:1]
	if got := m.checkPlugins([]string{elsewhere}); got.Result != Fail || !strings.Contains(got.Advice, "containernetworking-plugins") ||
		!strings.Contains(got.Detail, elsewhere) {
		t.Errorf("without plugins: %+v", got)
	}

	for _, tc := range []struct {
		made     bool // by the kubelet
		config   string
		notReady error
		result   Result
		says     string
	}{
		{false, "", nil, OK, "has a network"},
		{false, "", errors.New("cni is missing"), Warn, "into /etc/cni/net.d"},
		{false, elsewhere, errors.New("cni is missing"), Warn, "into " + elsewhere},
		{true, "", errors.New("cni is missing"), OK, "will create it"},
		{true, "/etc/cni/net.d/", errors.New("cni is missing"), OK, "will create it"},
		{true, elsewhere, nil, Fail, "set `conf_dir` to /etc/cni/net.d"},
	} {
		m.NodeNetwork = tc.made
		got := m.checkNetwork(cluster.Runtime{NotReady: tc.notReady, Network: cluster.RuntimeNetwork{Config: tc.config}})
		if got.Result != tc.result || !strings.Contains(got.Detail+got.Advice, tc.says) {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// What is wrong with a runtime that only root may use is not the runtime.
func TestRuntimeOfRoot(t *testing.T) {
	m := NewMachine("unix:///run/containerd/containerd.sock", t.TempDir(), 0)
	for fault, want := range map[error]string{syscall.EACCES: asRoot, syscall.ENOENT: "start containerd`, or install one", errors.New("unknown service"): "CRI plugin"} {
		if check := m.runtimeFault("container-runtime", fmt.Errorf("Status: %w", fault)); check.Result != Fail || !strings.Contains(check.Advice, want) {
			t.Errorf("%v: %+v", fault, check)
		}
	}
}
