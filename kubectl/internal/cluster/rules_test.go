package cluster

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The guard of the kubelet would stay when the cluster goes.
func TestTheKubeletMakesNoRules(t *testing.T) {
	all, err := programs(layout(t), &settings{NodeName: "n"}, UpOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if args := all[Kubelet].args; !slices.Contains(args, "--make-iptables-util-chains=false") {
		t.Errorf("it is started with %q", args)
	}
}

// A pod that sends packets to the machine's loopback through the bridge, which takes them as
// soon as one has a host port, reaches nothing there; down removes the rule.
func TestPodsDontReachLoopback(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to make a network namespace")
	}
	l := layout(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with this function
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		for _, command := range []string{
			"link set lo up", "link add " + l.Bridge() + " type bridge", "address add 192.0.2.1/24 dev " + l.Bridge(), "link set " + l.Bridge() + " up",
			"link add pod type veth peer name port", "link set port master " + l.Bridge(), "link set port up", "link set pod up",
		} {
			if err := runCommand(t.Context(), "ip", strings.Fields(command)...); err != nil {
				t.Error(err)
				return
			}
		}
		arrives := func(what, want string, addresses ...string) {
			if got, err := l.firstOf(addresses...); err != nil || got != want {
				t.Errorf("%s: the first packet from the pod that arrives is one to %s, want %s: %v", what, got, want, err)
			}
		}
		arrives("without anything", "192.0.2.1", "192.0.2.1") // by now the links are ready
		if err := runCommand(t.Context(), "sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/"+l.Bridge()+"/route_localnet"); err != nil {
			t.Error(err)
			return
		}
		arrives("with a host port", "127.0.0.1", "127.0.0.1", "192.0.2.1")
		for range 2 { // once, however often the cluster is brought up
			if err := l.guardLoopback(t.Context()); err != nil {
				t.Error(err)
			}
		}
		arrives("guarded", "192.0.2.1", "127.0.0.1", "127.1.2.3", "192.0.2.1")
		if err := l.removeRules(t.Context()); err != nil {
			t.Error(err)
		}
		if rules, err := exec.Command("iptables-save").Output(); err != nil || strings.Contains(string(rules), l.Network()) {
			t.Errorf("%v; left:\n%s", err, rules)
		}
	}()
	<-done
}

// firstOf sends a packet from the pod to each address, again and again until one arrives, and
// returns the address of the first one that does.
func (l Layout) firstOf(addresses ...string) (string, error) {
	receiver, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(receiver)
	again := unix.Timeval{Usec: 100_000}
	if err := errors.Join(unix.Bind(receiver, &unix.SockaddrInet4{}), unix.SetsockoptTimeval(receiver, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &again)); err != nil {
		return "", err
	}
	bound, err := unix.Getsockname(receiver)
	if err != nil {
		return "", err
	}
	text := make([]byte, 64)
	for {
		for _, address := range addresses {
			if err := l.sendFromPod(net.ParseIP(address), bound.(*unix.SockaddrInet4).Port, address); err != nil {
				return "", err
			}
		}
		n, _, err := unix.Recvfrom(receiver, text, 0)
		if err == nil || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return string(text[:n]), err
		}
	}
}

// sendFromPod sends a UDP packet as a pod can that has raw sockets: by Ethernet, to the bridge,
// whatever the routes say.
func (l Layout) sendFromPod(to net.IP, port int, text string) error {
	bridge, err := net.InterfaceByName(l.Bridge())
	if err != nil {
		return err
	}
	pod, err := net.InterfaceByName("pod")
	if err != nil {
		return err
	}
	var b []byte
	b = append(append(append(b, bridge.HardwareAddr...), pod.HardwareAddr...), 0x08, 0x00)
	header := []byte{0x45, 0, 0, byte(20 + 8 + len(text)), 0, 1, 0, 0, 64, unix.IPPROTO_UDP, 0, 0, 192, 0, 2, 2}
	header = append(header, to.To4()...)
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum+sum>>16))
	b = append(b, header...)
	b = binary.BigEndian.AppendUint16(b, 4444)
	b = binary.BigEndian.AppendUint16(b, uint16(port))
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(text)))
	b = append(append(b, 0, 0), text...) // without a checksum
	sender, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(sender)
	return unix.Sendto(sender, b, 0, &unix.SockaddrLinklayer{Ifindex: pod.Index})
}
