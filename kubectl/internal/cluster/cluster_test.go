package cluster

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	if err := l.checkAvailable(UpOptions{Address: "192.0.2.77", Without: []string{Apiserver}}); err == nil || !strings.Contains(err.Error(), "no such address") {
		t.Errorf("%v of an address that is another machine's", err)
	}
	if err := l.checkAvailable(UpOptions{Port: port}); err == nil || !strings.Contains(err.Error(), "--port") {
		t.Errorf("%v where port %d is another's", err, port)
	}
	// Loopback, where the API server listens without an address, is not one to advertise.
	first, err := chooseSettings(l, UpOptions{Port: 7443, NodeName: "n", Address: "127.0.0.1", Without: []string{Apiserver}})
	if err != nil {
		t.Fatal(err)
	}
	if first.Address != "" || first.listenOn() != "127.0.0.1" {
		t.Errorf("--address=127.0.0.1 is kept: %+v", first)
	}
	if err := l.checkAvailable(UpOptions{Port: port}); err != nil {
		t.Errorf("a cluster that has its port asks for another: %v", err)
	}
	if local := Of(l.Kubeconfig("admin")); local == nil || local.Dir != l.Dir || local.Scheduler != "https://127.0.0.1:"+strconv.Itoa(first.SchedulerPort) {
		t.Errorf("by its kubeconfig the cluster is %+v", local)
	}
	if local := Of(filepath.Join(t.TempDir(), "config")); local != nil {
		t.Errorf("some kubeconfig is %+v's", local)
	}
	again, err := chooseSettings(l, UpOptions{Port: 6443, Without: []string{Apiserver}})
	if err != nil || !reflect.DeepEqual(again, first) {
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

// A program that died is started as it was: with its flags, and the API server on its
// etcd, whatever the command line of this time leaves out.
func TestFlagsAreKept(t *testing.T) {
	l := layout(t)
	ask := func(o UpOptions) (string, map[string]string) {
		t.Helper()
		o.Port = 7443
		if before, err := loadSettings(l); err == nil {
			before.recall(&o)
		}
		if _, err := chooseSettings(l, o); err != nil {
			t.Fatal(err)
		}
		s, err := loadSettings(l)
		if err != nil {
			t.Fatal(err)
		}
		if s.EtcdServers != o.EtcdServers || !maps.Equal(s.Flags, o.Flags) {
			t.Errorf("saved %+v, started with %+v", s, o)
		}
		return o.EtcdServers, o.Flags
	}
	flags := map[string]string{Kubelet: "--max-pods=5"}
	ask(UpOptions{NodeName: "n", EtcdServers: "http://127.0.0.1:1", EtcdServersSet: true, Flags: flags})
	if etcd, got := ask(UpOptions{Flags: map[string]string{}}); etcd != "http://127.0.0.1:1" || !maps.Equal(got, flags) {
		t.Errorf("started again with etcd %q, flags %q", etcd, got)
	}
	want := map[string]string{Kubelet: "--max-pods=6", Scheduler: "--v=4"}
	if _, got := ask(UpOptions{Flags: want}); !maps.Equal(got, want) {
		t.Errorf("other flags: %q", got)
	}
	if etcd, got := ask(UpOptions{EtcdServersSet: true, Flags: map[string]string{Kubelet: ""}}); etcd != "" ||
		!maps.Equal(got, map[string]string{Scheduler: "--v=4"}) {
		t.Errorf("taken away: etcd %q, flags %q", etcd, got)
	}
}

// What was left out, for a program of the user's own, stays so, until the user asks for
// something else.
func TestWithoutIsKept(t *testing.T) {
	l := layout(t)
	first := UpOptions{Port: 7443, NodeName: "n", Without: []string{Scheduler}, WithoutSet: true}
	for _, test := range []struct {
		asked UpOptions
		want  []string
	}{
		{first, []string{Scheduler}},
		{UpOptions{}, []string{Scheduler}},
		{UpOptions{WithoutSet: true, Without: []string{Kubelet}}, []string{Kubelet}},
		{UpOptions{}, []string{Kubelet}},
		{UpOptions{WithoutSet: true}, nil},
		{UpOptions{}, nil},
	} {
		o := test.asked
		if before, err := loadSettings(l); err == nil {
			before.recall(&o)
		}
		s, err := chooseSettings(l, o)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.Without, test.want) || !slices.Equal(s.Without, test.want) {
			t.Errorf("%+v: left out are %v, %v saved, want %v", test.asked, o.Without, s.Without, test.want)
		}
	}
	status, err := GetStatus(t.Context(), l.Dir)
	if err != nil || status.Programs[1].Without || status.Programs[1].Reason != "not running" {
		t.Errorf("status %+v, %v", status, err)
	}
	if _, err := chooseSettings(l, UpOptions{Without: []string{Containerd}}); err != nil {
		t.Fatal(err)
	}
	if status, err = GetStatus(t.Context(), l.Dir); err != nil || !status.Programs[1].Without || status.Programs[1].Reason != "" {
		t.Errorf("status %+v, %v of what was left out", status, err)
	}
}

// Kubelets register in lower case: a certificate with other letters would not
// be the node's.
func TestNodeNames(t *testing.T) {
	l := layout(t)
	for range 2 {
		s, err := chooseSettings(l, UpOptions{Port: 7443, NodeName: "Node-1.Example.ORG"})
		if err != nil || s.NodeName != "node-1.example.org" {
			t.Fatalf("the node is called %+v, %v", s, err)
		}
	}
	for _, name := range []string{"node_1", strings.Repeat("a", 64)} {
		if _, err := chooseSettings(layout(t), UpOptions{Port: 7443, NodeName: name}); err == nil || !strings.Contains(err.Error(), "--node-name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// If loopback is down, up says so before it makes anything.
func TestLoopbackIsDown(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to make a network namespace")
	}
	if err := loopbackUp(); err != nil {
		t.Error(err)
	}
	dir := filepath.Join(t.TempDir(), "cluster")
	said := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this function
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			said <- err
			return
		}
		_, err := Up(t.Context(), UpOptions{Dir: dir, Port: 7443, Without: Parts}, &Lines{Out: os.Stderr})
		said <- err
	}()
	if err := <-said; err == nil || !strings.Contains(err.Error(), "`ip link set lo up`") {
		t.Errorf("up says %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("up has made %s: %v", dir, err)
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

func TestADirectoryHasAName(t *testing.T) {
	if _, err := newLayout(""); err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("a directory without a name: %v", err)
	}
}

// The programs are looked for where the user says, not where $PATH does.
func TestBinariesOfThisDirectory(t *testing.T) {
	here, elsewhere := t.TempDir(), t.TempDir()
	t.Chdir(here)
	t.Setenv("PATH", elsewhere)
	o := UpOptions{BinDir: ".", Without: []string{Apiserver, Scheduler}}
	put := func(dir string) {
		if err := os.WriteFile(filepath.Join(dir, Kubelet), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if put(elsewhere); o.checkBuilt() == nil {
		t.Error("a kubelet in $PATH is taken for the one in --bin-dir=.")
	}
	if put(here); o.checkBuilt() != nil {
		t.Errorf("the kubelet in --bin-dir=.: %v", o.checkBuilt())
	}
}

// Nothing is made on a machine that lacks the tools, or where programs are not built.
func TestMissingToolsComeFirst(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("kctl up needs root")
	}
	dir := filepath.Join(layout(t).Dir, "cluster")
	t.Setenv("PATH", t.TempDir())
	for want, without := range map[string][]string{
		"missing on this machine":             {Apiserver, Scheduler, Kubelet},
		"kubelet can't be found":              {Apiserver, Scheduler, Containerd},
		"or set its directory with --bin-dir": {Apiserver, Registry},
		"scheduler can't be found: ex":        {Apiserver},
	} {
		_, err := Up(t.Context(), UpOptions{Dir: dir, Port: 6443, BinDir: t.TempDir(), Without: without}, &Lines{Out: os.Stderr})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %v: %v", without, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory of a cluster that cannot be: %v", err)
		}
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

// The port of the API server is told to everybody, and can't be changed behind their backs.
func TestPortHasOneFlag(t *testing.T) {
	for flags, fits := range map[string]bool{"--secure-port=7000": false, "--v=2 --secure-port 7000": false, "--v=2": true, "": true} {
		if err := (UpOptions{Port: 6443, Flags: map[string]string{Apiserver: flags}}).Validate(); (err == nil) != fits {
			t.Errorf("--apiserver-flags=%q: %v", flags, err)
		}
	}
}
