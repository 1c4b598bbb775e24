package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kctl/kubectl/internal/certificates"
	"kctl/proto/rest"
)

func layout(t *testing.T) Layout {
	t.Helper()
	dir, err := os.MkdirTemp("", "kctl-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := newLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSplitFlags(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"  ":                         nil,
		"--a=1 --b=2":                {"--a=1", "--b=2"},
		`--a='x y'  --b="it's" --c=`: {"--a=x y", "--b=it's", "--c="},
		`--empty ''`:                 {"--empty", ""},
	} {
		got, err := splitFlags(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := splitFlags(`--a="x`); err == nil {
		t.Error("an open quote is taken")
	}
}

func TestLayoutNamesFitTheKernel(t *testing.T) {
	l := layout(t)
	if n := len(l.Bridge()); n > 15 {
		t.Errorf("the bridge's name has %d characters", n)
	}
	other, err := newLayout(l.Dir + "2")
	if err != nil {
		t.Fatal(err)
	}
	if other.ID() == l.ID() {
		t.Error("two directories have one id")
	}
	if _, err := newLayout("/" + strings.Repeat("long/", 30)); err == nil {
		t.Error("a directory too long for a socket is taken")
	}
}

func TestSettingsStay(t *testing.T) {
	l := layout(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	if s, err := chooseSettings(l, UpOptions{Port: port, NodeName: "n"}); err == nil || !strings.Contains(err.Error(), "--port") {
		t.Errorf("%+v, %v where port %d is another's", s, err, port)
	}
	first, err := chooseSettings(l, UpOptions{Port: 7443, NodeName: "n", Without: []string{Apiserver}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := chooseSettings(l, UpOptions{Port: 6443})
	if err != nil || *again != *first {
		t.Errorf("second time %+v, %v, want %+v", again, err, first)
	}
	if _, err := chooseSettings(l, UpOptions{Port: 6443, PortSet: true}); err == nil {
		t.Error("another port is taken for a cluster that has one")
	}
	if _, err := chooseSettings(l, UpOptions{Port: 7443, NodeName: "m"}); err == nil {
		t.Error("another node name is taken for a cluster that has one")
	}
	if _, err := chooseSettings(l, UpOptions{Address: "192.0.2.1"}); err == nil {
		t.Error("another address is taken for a cluster that has one")
	}
	ports := []int{first.Port, first.RegistryPort, first.SchedulerPort, first.KubeletPort, first.HealthzPort}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 5 {
		t.Errorf("a port is used twice: %+v", first)
	}
}

func TestFreePortSkipsOneInUse(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.0.0.2:0"} { // the second: where `kctl up --address` may listen
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		used := listener.Addr().(*net.TCPAddr).Port
		if got, err := freePort(used, nil); err != nil || got == used {
			t.Errorf("got %d, %v", got, err)
		}
	}
}

func TestFreeSubnet(t *testing.T) {
	text, err := freeSubnet("deadbeef")
	if err != nil {
		t.Fatal(err)
	}
	subnet, err := netip.ParsePrefix(text)
	if err != nil || subnet.Bits() != 24 || !netip.MustParsePrefix("10.64.0.0/10").Overlaps(subnet) {
		t.Errorf("got %s, %v", text, err)
	}
	taken := []net.Addr{&net.IPNet{IP: net.IP(subnet.Addr().AsSlice()), Mask: net.CIDRMask(20, 32)}}
	if !overlaps(subnet, taken) {
		t.Error("a subnet inside of an interface's does not overlap it")
	}
}

func TestPKIAndKubeconfigs(t *testing.T) {
	l := layout(t)
	s := &settings{NodeName: "node-1", Port: 6443}
	now := time.Now()
	if _, err := certificatesOf(l, s, netip.MustParseAddr("10.0.0.1")).Make(now); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]struct{ name, group string }{
		"admin": {"kubernetes-admin", "system:masters"}, "scheduler": {"system:kube-scheduler", ""},
		"controller-manager": {"system:kube-controller-manager", ""}, "kubelet": {"system:node:node-1", "system:nodes"},
	} {
		config, err := rest.LoadKubeconfig(l.Kubeconfig(user))
		if err != nil {
			t.Fatal(err)
		}
		tlsConfig, err := config.TLS()
		if err != nil {
			t.Fatal(err)
		}
		leaf := tlsConfig.Certificates[0].Leaf
		if leaf.Subject.CommonName != want.name || want.group != "" && !slices.Contains(leaf.Subject.Organization, want.group) {
			t.Errorf("%s is %v", user, leaf.Subject)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: tlsConfig.RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		info, err := os.Stat(l.Kubeconfig(user))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", user, info.Mode(), err)
		}
	}
	before := fingerprint(t, l, "apiserver")
	if _, err := certificatesOf(l, s, netip.MustParseAddr("10.0.0.1")).Make(now.Add(time.Hour)); err != nil || fingerprint(t, l, "apiserver") != before {
		t.Errorf("a good certificate was made anew: %v", err)
	}
	if _, err := certificatesOf(l, s, netip.MustParseAddr("10.0.0.1")).Make(now.Add(certificates.Lasts - renewBefore + time.Hour)); err != nil || fingerprint(t, l, "apiserver") == before {
		t.Errorf("a certificate that ends soon was kept: %v", err)
	}
}

// TestReachableByPods: what pods and other machines connect to has certificates
// for it.
func TestReachableByPods(t *testing.T) {
	for address, good := range map[string]bool{"": true, "192.0.2.1": true, "0.0.0.0": false, "::1": false, "host": false} {
		if err := (UpOptions{Port: 1, Address: address}).Validate(); (err == nil) != good {
			t.Errorf("--address=%q: %v", address, err)
		}
	}
	l := layout(t)
	s, err := chooseSettings(l, UpOptions{Port: 7443, NodeName: "n", Address: "192.0.2.1", Without: []string{Apiserver}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certificatesOf(l, s, netip.MustParseAddr("10.0.0.1")).Make(time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, hosts := range map[string][]string{
		"apiserver":      {"127.0.0.1", "192.0.2.1", "10.0.0.1", "kubernetes.default.svc", "n"},
		"kubelet-server": {"127.0.0.1", "192.0.2.1", "n"},
	} {
		pair, err := tls.LoadX509KeyPair(l.PKI(name+".crt"), l.PKI(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range hosts {
			if err := pair.Leaf.VerifyHostname(host); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	all, err := programs(l, s, UpOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for part, flags := range map[string][]string{
		Apiserver: {"--bind-address=0.0.0.0", "--advertise-address=192.0.2.1"},
		Kubelet:   {"--node-ip=192.0.2.1", "--address=192.0.2.1"},
	} {
		for _, flag := range flags {
			if !slices.Contains(all[part].args, flag) {
				t.Errorf("%s is started without %s: %v", part, flag, all[part].args)
			}
		}
	}
}

func TestServiceAddress(t *testing.T) {
	for flags, want := range map[string]string{
		"": "10.0.0.1",
		"-v=4 --service-cluster-ip-range=10.96.0.0/12":                                  "10.96.0.1",
		"--service-cluster-ip-range 10.96.7.0/16 --event-ttl=2h":                        "10.96.0.1",
		"--service-cluster-ip-range=10.1.0.0/16 --service-cluster-ip-range=10.2.0.0/16": "10.2.0.1",
	} {
		if got, err := serviceAddress(flags); err != nil || got.String() != want {
			t.Errorf("%q: %s, %v", flags, got, err)
		}
	}
	for _, flags := range []string{"--service-cluster-ip-range=ten", "'open"} {
		if got, err := serviceAddress(flags); err == nil {
			t.Errorf("%q: %s", flags, got)
		}
	}
}

func fingerprint(t *testing.T, l Layout, name string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(l.PKI(name+".crt"), l.PKI(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.String()
}

func TestPrepareLeavesOthersDirectoriesAlone(t *testing.T) {
	l := layout(t)
	if err := os.WriteFile(filepath.Join(l.Dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.prepare(); err == nil {
		t.Error("a directory with somebody's file in it is taken")
	}
	if err := Down(t.Context(), DownOptions{Dir: l.Dir}, &Lines{Out: os.Stderr}); err == nil {
		t.Error("down on a directory that is no cluster's succeeds")
	}
	if _, err := os.Stat(filepath.Join(l.Dir, "precious")); err != nil {
		t.Error(err)
	}
}

func TestLock(t *testing.T) {
	l := layout(t)
	unlock, err := l.prepare()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.lock(); err == nil {
		t.Error("two hold the lock")
	}
	unlock()
	again, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestPIDOfAnotherProcessIsNotOurs(t *testing.T) {
	l := layout(t)
	if err := os.MkdirAll(l.path("run"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(l.PIDFile("kubelet"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strconv.Itoa(os.Getpid()))
	if pid := l.pid("kubelet"); pid != 0 {
		t.Errorf("this test's process %d passes for a kubelet", pid)
	}
	write("rubbish")
	if pid := l.pid("kubelet"); pid != 0 {
		t.Errorf("rubbish is process %d", pid)
	}
	// One that names the directory on its command line and does not end by itself.
	cmd := exec.Command("tail", "-f", "/dev/null", l.PIDFile("kubelet"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { _ = cmd.Wait(); close(reaped) }() // as init would
	defer func() { _ = cmd.Process.Kill(); <-reaped }()
	write(strconv.Itoa(cmd.Process.Pid))
	if pid := l.pid("kubelet"); pid != cmd.Process.Pid {
		t.Fatalf("our process is %d, want %d", pid, cmd.Process.Pid)
	}
	if stopped, err := l.stop(t.Context(), "kubelet", 5*time.Second); !stopped || err != nil {
		t.Errorf("stop: %t, %v", stopped, err)
	}
	if _, err := os.Stat(l.PIDFile("kubelet")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestAwaitSaysWhyAProgramEnded(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	p := program{name: "kubelet", path: "/bin/sh", args: []string{"-c", "echo no such device; exit 3", l.path("x") + "/"},
		ready: func(context.Context) error { return errors.New("not yet") }}
	if _, err := l.start(t.Context(), p); err == nil || !strings.Contains(err.Error(), "no such device") {
		t.Errorf("got %v", err)
	}
}

// Just after it was started, a program's command line can be empty.
func TestAwaitBelievesInAProgramWithoutCommandLine(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	looked := 0
	p := program{name: "kubelet", path: "/bin/sh", args: []string{"-c", "exec sleep 2"}, ready: func(context.Context) error {
		if looked++; looked < 3 {
			return errors.New("not yet")
		}
		return nil
	}}
	ended, err := l.spawn(p)
	if err == nil {
		err = l.await(t.Context(), p, ended)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestJumpTarget(t *testing.T) {
	const rule = `-A POSTROUTING -s 10.1.0.2/32 -m comment --comment "name: \"kctl-ab\" id: \"x\"" -j CNI-123`
	if got := jumpTarget(rule); got != "CNI-123" {
		t.Errorf("got %q", got)
	}
	if got := jumpTarget("-A POSTROUTING"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestRuntimeConfig(t *testing.T) {
	l := layout(t)
	s := &settings{RegistryPort: 5001, PodCIDR: "10.64.1.0/24"}
	if err := writeRuntimeConfig(l, s, "/cni"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(l.path("cni", "net.d", "10-kctl.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	var network struct {
		Name    string
		Plugins []struct{ Bridge string }
	}
	if err := json.Unmarshal(data, &network); err != nil || network.Name != l.Network() || network.Plugins[0].Bridge != l.Bridge() {
		t.Errorf("network %+v, %v", network, err)
	}
	config, err := os.ReadFile(l.path("containerd.toml"))
	if err != nil || !strings.Contains(string(config), strconv.Quote(l.Socket())) {
		t.Errorf("containerd's configuration: %v\n%s", err, config)
	}
}

// A process that the runtime forgot ends with the cluster, and its cgroups go.
func TestForgottenProcessesEnd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to make control groups")
	}
	l := layout(t)
	hierarchy := "/sys/fs/cgroup"
	if _, err := os.Stat(hierarchy + "/cgroup.controllers"); err != nil {
		hierarchy += "/pids" // version 1
	}
	group := filepath.Join(hierarchy, l.CgroupRoot(), "pod1", "container1")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.removeCgroups() })
	forgotten := exec.Command("sleep", "infinity")
	if err := forgotten.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = forgotten.Process.Kill() })
	pid := []byte(strconv.Itoa(forgotten.Process.Pid))
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), pid, 0); err != nil {
		t.Fatal(err)
	}
	if err := l.killPodProcesses(); err != nil {
		t.Fatal(err)
	}
	if err := forgotten.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the forgotten process ended with %v, want a kill", err)
	}
	if err := l.removeCgroups(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(hierarchy, l.CgroupRoot())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cgroup is there: %v", err)
	}
}
