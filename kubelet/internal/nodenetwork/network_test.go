package nodenetwork

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"kctl/kubelet/internal/netnstest"
)

// inside runs f in a new network namespace, which has a link with the address 192.0.2.1/24.
func inside(t *testing.T, f func()) {
	t.Helper()
	netnstest.Inside(t, func() {
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = "uplink", 1500
		uplink := &netlink.Bridge{LinkAttrs: attrs}
		if err == nil {
			err = netlink.LinkAdd(uplink)
		}
		if err == nil {
			err = netlink.AddrAdd(uplink, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("192.0.2.1/24"))})
		}
		if err == nil {
			err = netlink.LinkSetUp(uplink)
		}
		if err != nil {
			t.Error(err)
			return
		}
		f()
	})
}

func run(t *testing.T, command string, args ...string) error {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// shows fails the test unless a command prints every one of want, and none of
// those that begin with "!".
func shows(t *testing.T, command string, want ...string) {
	t.Helper()
	words := strings.Fields(command)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v %s", command, err, out)
	}
	for _, w := range want {
		text, not := strings.CutPrefix(w, "!")
		if strings.Contains(string(out), text) == not {
			t.Errorf("%s: want %q in\n%s", command, w, out)
		}
	}
}

// connected applies the plan for these nodes to the namespace; node a is ours.
func connected(t *testing.T, mode Mode, peers ...peer) {
	t.Helper()
	n := &Network{options: Options{Mode: mode, Node: "a"}}
	p, _ := makePlan(mode, "a", append(peers, member("a", "192.0.2.1", "10.0.0.0/24", "fd00::/64")))
	for range 2 { // what is right stays as it is
		if _, err := n.connect(p); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func TestRoutesFollowTheNodes(t *testing.T) {
	inside(t, func() {
		if err := run(t, "ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.99"); err != nil {
			t.Error(err)
		}
		connected(t, Routes, member("b", "192.0.2.2", "10.0.1.0/24"), member("c", "192.0.2.3", "10.0.2.0/24"))
		shows(t, "ip route", "10.0.1.0/24 via 192.0.2.2", "10.0.2.0/24 via 192.0.2.3", "198.51.100.0/24")
		// One node has another address, the other was removed.
		connected(t, Routes, member("b", "192.0.2.22", "10.0.1.0/24"))
		shows(t, "ip route", "10.0.1.0/24 via 192.0.2.22", "!10.0.2.0", "198.51.100.0/24")
		// No link leads to it: it is named, and the others get their routes.
		p, _ := makePlan(Routes, "a", []peer{member("a", "192.0.2.1", "10.0.0.0/24"), member("b", "203.0.113.1", "10.0.1.0/24"),
			member("c", "192.0.2.3", "10.0.2.0/24")})
		err := setRoutes(p.routes, nil)
		if err == nil || !strings.Contains(err.Error(), "10.0.1.0/24 by 203.0.113.1") || !strings.Contains(err.Error(), "vxlan") {
			t.Errorf("got %v", err)
		}
		shows(t, "ip route", "10.0.2.0/24 via 192.0.2.3")
	})
}

func TestVXLANFollowsTheNodes(t *testing.T) {
	inside(t, func() {
		if err := run(t, "ip", "link", "add", "try", "type", "vxlan", "id", "1", "dstport", "1"); err != nil {
			t.Skipf("skipped: this kernel has no VXLAN: %v", err)
		}
		connected(t, VXLAN, member("b", "203.0.113.2", "10.0.1.0/24", "fd00:1::/64"), member("c", "203.0.113.3", "10.0.2.0/24"))
		shows(t, "ip -d link show "+vxlanLink, "vxlan id 107", "local 192.0.2.1", "dstport 4789", "0a:58:c0:00:02:01", "mtu 1450")
		shows(t, "ip addr show "+vxlanLink, "10.0.0.0/32", "fd00::/128")
		shows(t, "ip route", "10.0.1.0/24 via 10.0.1.0 dev "+vxlanLink, "10.0.2.0/24")
		shows(t, "ip -6 route", "fd00:1::/64 via fd00:1:: dev "+vxlanLink)
		shows(t, "ip neigh", "10.0.1.0 dev "+vxlanLink+" lladdr 0a:58:cb:00:71:02")
		shows(t, "bridge fdb show dev "+vxlanLink, "0a:58:cb:00:71:02 dst 203.0.113.2", "0a:58:cb:00:71:03 dst 203.0.113.3")
		connected(t, VXLAN, member("b", "203.0.113.9", "10.0.1.0/24"))
		shows(t, "bridge fdb show dev "+vxlanLink, "0a:58:cb:00:71:09 dst 203.0.113.9", "!203.0.113.2", "!203.0.113.3")
		shows(t, "ip neigh", "!10.0.2.0", "!fd00:1::", "10.0.1.0 dev "+vxlanLink+" lladdr 0a:58:cb:00:71:09")
		// Changing the mode leaves nothing of the old one.
		connected(t, Routes, member("b", "192.0.2.2", "10.0.1.0/24"))
		shows(t, "ip route", "10.0.1.0/24 via 192.0.2.2")
		shows(t, "ip link", "!"+vxlanLink)
	})
}

func TestRulesAreReplacedNotAdded(t *testing.T) {
	inside(t, func() {
		if err := run(t, "iptables", "-t", "nat", "-A", "POSTROUTING", "-s", "198.51.100.1", "-j", "MASQUERADE"); err != nil {
			t.Error(err)
			return
		}
		for i := range 3 {
			own, pods := prefixes("10.0.0.0/24", "fd00::/64"), prefixes(fmt.Sprintf("10.%d.0.0/23", i), "fd00::/56")
			if err := setRules(t.Context(), own, pods, netip.Addr{}); err != nil {
				t.Error(err)
				return
			}
		}
		shows(t, "iptables -t nat -S", "198.51.100.1", "-s 10.0.0.0/24 -d 10.2.0.0/23 -j RETURN", "!10.1.0.0/23", "-s 10.0.0.0/24 ! -d 224.0.0.0/4 -j MASQUERADE")
		shows(t, "iptables -S FORWARD", "-j "+pass)
		shows(t, "iptables -t mangle -S", "-A "+loopback+" -d 127.0.0.0/8 -i kctl-pods -j DROP", "-j "+loopback, "!4789")
		shows(t, "ip6tables -t nat -S", "-s fd00::/64 -d fd00::/56 -j RETURN", "-d ff00::/8 -j MASQUERADE")
		for chain, of := range map[string][]string{masquerade: {"nat", "POSTROUTING"}, loopback: {"mangle", "PREROUTING"}, overlay: {"mangle", "FORWARD"},
			source: {"mangle", "PREROUTING"}} {
			out, _ := exec.Command("iptables", "-t", of[0], "-S", of[1]).Output()
			if strings.Count(string(out), chain) != 1 {
				t.Errorf("%s", out)
			}
		}
	})
}

// Where the kernel has no table mangle, pods still get out, and somebody hears that they reach
// the node's loopback.
func TestRulesWithoutTheTableMangle(t *testing.T) {
	real, err := exec.LookPath("iptables-restore")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	refuses := fmt.Sprintf("#!/bin/sh\nrules=$(cat)\ncase $rules in *'*mangle'*) echo no table mangle; exit 3 ;; esac\necho \"$rules\" | exec %s \"$@\"\n", real)
	if err := os.WriteFile(filepath.Join(dir, "iptables-restore"), []byte(refuses), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	inside(t, func() {
		if err := setRules(t.Context(), prefixes("10.0.0.0/24"), prefixes("10.0.0.0/16"), netip.Addr{}); err == nil || !strings.Contains(err.Error(), "loopback") ||
			!strings.Contains(err.Error(), "no table mangle") {
			t.Errorf("setRules = %v", err)
		}
		shows(t, "iptables -t nat -S", "-s 10.0.0.0/24 ! -d 224.0.0.0/4 -j MASQUERADE", "-j "+masquerade)
		shows(t, "iptables -S FORWARD", "-j "+pass)
	})
}

// A machine with the name of another machine's node leaves its own network as
// it is.
func TestTheNodeIsAnotherMachine(t *testing.T) {
	inside(t, func() {
		dir := filepath.Join(t.TempDir(), "net.d")
		n := &Network{options: Options{Mode: Routes, Node: "b", ConfigDir: dir}, peers: map[string]peer{
			"a": member("a", "192.0.2.1", "10.0.0.0/24"), "b": member("b", "192.0.2.2", "10.0.1.0/24"),
		}}
		if err := n.ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "the same node name") {
			t.Errorf("got %v", err)
		}
		shows(t, "ip route", "!10.0.0.0")
		if _, err := os.Stat(dir); err == nil {
			t.Error("a CNI configuration was written")
		}
	})
}
