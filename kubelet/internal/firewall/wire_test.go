package firewall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// wire sends packets from the link pod to the bridge pods as a pod can that has raw sockets: by
// Ethernet, whatever the routes say.
type wire struct {
	t                *testing.T
	receiver, sender int
	port             int // of the receiver
	header           []byte
	to               *unix.SockaddrLinklayer
	call             int
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{t: t}
	var err error
	check := func(err error) {
		if err != nil {
			panic(err) // t.Fatal must not be called in this goroutine
		}
	}
	w.receiver, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	check(err)
	t.Cleanup(func() { _ = unix.Close(w.receiver) })
	w.sender, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	check(err)
	t.Cleanup(func() { _ = unix.Close(w.sender) })
	again := unix.Timeval{Usec: 100_000}
	check(errors.Join(unix.Bind(w.receiver, &unix.SockaddrInet4{}), unix.SetsockoptTimeval(w.receiver, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &again)))
	bound, err := unix.Getsockname(w.receiver)
	check(err)
	w.port = bound.(*unix.SockaddrInet4).Port
	bridge, err := net.InterfaceByName("pods")
	check(err)
	pod, err := net.InterfaceByName("pod")
	check(err)
	w.header = append(append(append(w.header, bridge.HardwareAddr...), pod.HardwareAddr...), 0x08, 0x00)
	w.to = &unix.SockaddrLinklayer{Ifindex: pod.Index}
	return w
}

// firstOf sends a packet to each address, again and again until one arrives, and returns the
// address to which that was sent.
func (w *wire) firstOf(addresses ...string) string {
	w.t.Helper()
	w.call++
	text := make([]byte, 64)
	for {
		for _, address := range addresses {
			if err := unix.Sendto(w.sender, w.packet(address), 0, w.to); err != nil {
				w.t.Error(err)
				return ""
			}
		}
		n, _, err := unix.Recvfrom(w.receiver, text, 0)
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			w.t.Error(err)
			return ""
		}
		// Another one is late, and of an earlier call.
		if address, ours := strings.CutPrefix(string(text[:max(n, 0)]), w.mark()); ours {
			return address
		}
	}
}

func (w *wire) mark() string { return fmt.Sprint(w.call, " to ") }

// packet is one of UDP that says where it was sent.
func (w *wire) packet(address string) []byte {
	text := w.mark() + address
	ip := []byte{0x45, 0, 0, byte(20 + 8 + len(text)), 0, 1, 0, 0, 64, unix.IPPROTO_UDP, 0, 0, 192, 0, 2, 2}
	ip = append(ip, net.ParseIP(address).To4()...)
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	b := append(append([]byte{}, w.header...), ip...)
	b = binary.BigEndian.AppendUint16(b, 4444)
	b = binary.BigEndian.AppendUint16(b, uint16(w.port))
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(text)))
	return append(append(b, 0, 0), text...) // without a checksum
}
