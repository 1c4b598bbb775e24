package nodenetwork

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kctl/proto/core"
	"kctl/proto/eventually"
)

// podBehindBridge connects a pod with the address 10.0.0.2 to the bridge of the node's pods, in whose namespace it is
// called. What is sent to the channel runs in the pod's namespace.
func podBehindBridge(t *testing.T) chan<- func() {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = core.NodeNetworkBridge
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	must(t, netlink.LinkAdd(bridge), netlink.AddrAdd(bridge, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.0.0.1/24"))}), netlink.LinkSetUp(bridge))
	attrs = netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = "host-end", bridge.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "pod-end"}
	must(t, netlink.LinkAdd(veth), netlink.LinkSetUp(veth))
	pod, err := netlink.LinkByName("pod-end")
	must(t, err)

	work, namespace := make(chan func()), make(chan *os.File)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err != nil {
			t.Error(err)
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			t.Error(err)
		}
		namespace <- file
		for f := range work {
			f()
		}
	}()
	t.Cleanup(func() { close(work) })
	file := <-namespace
	defer file.Close()
	must(t, netlink.LinkSetNsFd(pod, int(file.Fd())))
	do(work, func() {
		inPod, err := netlink.LinkByName("pod-end")
		if err != nil {
			t.Error(err)
			return
		}
		for _, err := range []error{
			netlink.AddrAdd(inPod, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.0.0.2/24"))}), netlink.LinkSetUp(inPod),
			netlink.RouteAdd(&netlink.Route{Gw: netip.MustParseAddr("10.0.0.1").AsSlice()}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return work
}

func do(work chan<- func(), f func()) {
	done := make(chan struct{})
	work <- func() { defer close(done); f() }
	<-done
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
			runtime.Goexit() // in a namespace's own goroutine
		}
	}
}

// receiver is a socket for UDP at a port of the namespace; received counts what has come since it was asked last.
func receiver(t *testing.T, port int) (received func() int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Port: port}))
	return func() (n int) {
		for {
			if _, _, err := unix.Recvfrom(fd, make([]byte, 16), 0); err != nil {
				return n
			}
			n++
		}
	}
}

const servicePort = 53

// service does what kube-proxy does for a service whose pod is in the network of the host: its ports lead to the
// overlay's, and to the one after that.
func service(t *testing.T, address, host string) {
	t.Helper()
	for port, target := range map[int]int{servicePort: vxlanPort, vxlanPort + 1: vxlanPort + 1} {
		rule := fmt.Sprintf("-t nat -A PREROUTING -d %s -p udp --dport %d -j DNAT --to-destination %s:%d", address, port, host, target)
		if out, err := exec.CommandContext(t.Context(), "iptables", strings.Fields(rule)...).CombinedOutput(); err != nil {
			t.Errorf("iptables %s: %v: %s", rule, err, out)
		}
	}
}

// sendFrom sends from an address that the pod gives itself.
func sendFrom(t *testing.T, pod chan<- func(), from, to netip.Addr, port int) {
	t.Helper()
	do(pod, func() {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			t.Error(err)
			return
		}
		bits := from.BitLen()
		if err := netlink.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(from, bits)), Flags: unix.IFA_F_NODAD}); err != nil {
			t.Error(err)
		}
		socket := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
		conn, err := socket.Dial("udp", netip.AddrPortFrom(to, uint16(port)).String())
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Error(err)
		}
	})
}

// Whoever is called takes a packet's sender for its word, as network policies do.
func TestPodsSendFromTheirNodesAddressesOnly(t *testing.T) {
	inside(t, func() {
		pod := podBehindBridge(t)
		// What many distributions have switched on would hide that our rules don't work.
		for _, link := range []string{"all", core.NodeNetworkBridge} {
			must(t, os.WriteFile("/proc/sys/net/ipv4/conf/"+link+"/rp_filter", []byte("0"), 0o600))
		}
		must(t, run(t, "ip", "route", "add", "default", "via", "192.0.2.99"))
		forged, honest := receiver(t, 9001), receiver(t, 9002)
		send := func() (arrived bool) {
			t.Helper()
			node := netip.MustParseAddr("192.0.2.1")
			sendFrom(t, pod, netip.MustParseAddr("10.0.1.5"), node, 9001) // of another node's pod
			sendFrom(t, pod, netip.MustParseAddr("10.0.0.2"), node, 9002)
			eventually.Holds(t, "what the pod sent from its own address", func() bool { return honest() > 0 })
			return forged() > 0
		}
		if !send() {
			t.Error("nothing arrives without the rules, so that they are not tried")
		}
		own, pods := prefixes("10.0.0.0/24", "fd00::/64"), prefixes("10.0.0.0/16", "fd00::/56")
		must(t, setRules(t.Context(), own, pods, netip.Addr{}))
		if send() {
			t.Error("a pod sent from the address of another node's pod")
		}
		// A node has several ranges in time, and pods find their neighbours by addresses of none.
		must(t, setRules(t.Context(), append(own, prefixes("10.0.1.0/24")...), pods, netip.Addr{}))
		if !send() {
			t.Error("a pod can't send from the node's second range")
		}
		shows(t, "ip6tables -t mangle -S", "-A "+source+" -s fd00::/64 -j RETURN", "-A "+source+" -s fe80::/10 -j RETURN",
			"-A "+source+" -s ::/128 -j RETURN", "-A "+source+" -i kctl-pods -j DROP", "-j "+source)
	})
}

// A pod that could send to the overlay's port could send from any pod's address.
func TestPodsDontReachTheOverlaysPort(t *testing.T) {
	inside(t, func() {
		pod := podBehindBridge(t)
		service(t, "10.96.0.1", "192.0.2.1")
		arrived, other := receiver(t, vxlanPort), receiver(t, vxlanPort+1)
		send := func(to string) {
			t.Helper()
			do(pod, func() {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer unix.Close(fd)
				for _, port := range []int{servicePort, vxlanPort, vxlanPort + 1} {
					if err := unix.Sendto(fd, []byte("frame"), 0, &unix.SockaddrInet4{Port: port, Addr: netip.MustParseAddr(to).As4()}); err != nil {
						t.Error(err)
					}
				}
			})
			eventually.Holds(t, "what the pod sent to another port", func() bool { return other() > 0 })
		}
		own, pods := prefixes("10.0.0.0/24"), prefixes("10.0.0.0/16")
		for _, c := range []struct {
			overlay netip.Addr
			comes   bool
		}{{netip.Addr{}, true}, {netip.MustParseAddr("192.0.2.1"), false}, {netip.MustParseAddr("2001:db8::1"), true}} {
			must(t, setRules(t.Context(), own, pods, c.overlay))
			// The node's address, the bridge's, and that of a service.
			for _, to := range []string{"192.0.2.1", "10.0.0.1", "10.96.0.1"} {
				if send(to); (arrived() > 0) != c.comes {
					t.Errorf("overlay %v: what a pod sent to %s came in: %v", c.overlay, to, !c.comes)
				}
			}
		}
		shows(t, "ip6tables -t mangle -S", "-A "+overlay+" -i kctl-pods -p udp -m udp --dport 4789 -j DROP", "-A INPUT", "-A FORWARD")
	})
}
