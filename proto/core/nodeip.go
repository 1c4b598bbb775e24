package core

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ParseNodeIPs reads what --node-ip says: the address by which others reach a
// node, or one of each family, with a comma between them.
func ParseNodeIPs(flag string) ([]string, error) {
	var all []string
	families := map[bool]bool{}
	for text := range strings.SplitSeq(flag, ",") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not an IP address", text)
		}
		if ip = ip.Unmap(); ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() {
			return nil, fmt.Errorf("%s is not an address on which others can reach a node", text)
		}
		if families[ip.Is4()] {
			return nil, fmt.Errorf("%q has two addresses of one family; specify one address, or one IPv4 and one IPv6 address", flag)
		}
		families[ip.Is4()] = true
		all = append(all, ip.String())
	}
	return all, nil
}

// OwnAddress is the address by which others reach this machine: the one that packets
// leave it from, or else the first IPv4 one that is not loopback, or else loopback.
func OwnAddress() (netip.Addr, error) {
	if local, ok := RoutedAddress(); ok {
		return local, nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("addresses of this machine: %w", err)
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast() {
			return prefix.Addr(), nil
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
}

// RoutedAddress is the address that packets to elsewhere leave this machine from, if there is a route.
func RoutedAddress() (address netip.Addr, ok bool) {
	// Connecting a datagram socket sends nothing; it only looks up the route. To list
	// interfaces would take a netlink socket, which not every service may have.
	dialer := net.Dialer{Control: preferPublic}
	for _, documentation := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		conn, err := dialer.Dial("udp", documentation)
		if err != nil {
			continue
		}
		local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		conn.Close()
		if local.IsGlobalUnicast() {
			return local, true
		}
	}
	return netip.Addr{}, false
}

// preferPublic keeps the kernel from choosing a temporary address (RFC 8981): it would be another one tomorrow.
// A kernel that knows no preferences chooses as it does.
func preferPublic(network, _ string, conn syscall.RawConn) error {
	if network != "udp6" {
		return nil
	}
	const preferPublicSource = 2 // IPV6_PREFER_SRC_PUBLIC (RFC 5014)
	return conn.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_ADDR_PREFERENCES, preferPublicSource)
	})
}
