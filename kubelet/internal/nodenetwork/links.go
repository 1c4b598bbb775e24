package nodenetwork

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kctl/proto/core"
)

const (
	routeProtocol = core.NodeNetworkRoutes

	vxlanLink = core.NodeNetworkVXLAN
	vxlanID   = 107
	vxlanPort = 4789 // IANA's
	// vxlanOverhead is the overhead of each packet over IPv4, in bytes; over IPv6
	// it is 20 more.
	vxlanOverhead = 50
)

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func prefixOf(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	addr, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), bits)
}

// forward makes the kernel forward packets between pods and other nodes.
func forward(ranges []netip.Prefix) error {
	for _, r := range ranges {
		path := "/proc/sys/net/ipv4/ip_forward"
		if r.Addr().Is6() {
			path = "/proc/sys/net/ipv6/conf/all/forwarding"
		}
		if have, err := os.ReadFile(path); err == nil && len(have) > 0 && have[0] == '1' {
			continue
		}
		if err := os.WriteFile(path, []byte("1"), 0o644); err != nil {
			return fmt.Errorf("let packets pass: %w", err)
		}
	}
	return nil
}

// setRoutes sets the routes of a plan and removes those of ours that are not in
// it. One that can't be set is an error that names it; the others are set all
// the same.
func setRoutes(routes []route, link netlink.Link) error {
	var errs []error
	wanted := map[netip.Prefix]bool{}
	for _, r := range routes {
		wanted[r.to] = true
		way := &netlink.Route{Dst: ipNet(r.to), Gw: r.via.AsSlice(), Protocol: routeProtocol}
		if link != nil {
			way.LinkIndex, way.Flags = link.Attrs().Index, int(netlink.FLAG_ONLINK)
		}
		if err := netlink.RouteReplace(way); err != nil {
			errs = append(errs, fmt.Errorf("route to %s by %s: %w", r.to, r.via, unreachable(err)))
		}
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		have, err := netlink.RouteListFiltered(family, &netlink.Route{Protocol: routeProtocol}, netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			errs = append(errs, fmt.Errorf("list routes: %w", err))
		}
		for _, r := range have {
			if wanted[prefixOf(r.Dst)] {
				continue
			}
			if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, fmt.Errorf("remove the route to %s: %w", r.Dst, err))
			}
		}
	}
	return errors.Join(errs...)
}

// unreachable says what to do if a gateway is on none of our links.
func unreachable(err error) error {
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return fmt.Errorf("%w: the nodes share no link; use --node-network=vxlan", err)
	}
	return err
}

// setVXLAN makes the link, its addresses, and one entry for each other node: at
// which address it is (FDB) and who has its address in there (ARP, NDP).
func setVXLAN(p plan) (netlink.Link, error) {
	underlay := p.own.underlay()
	parent, err := linkWith(underlay)
	if err != nil {
		return nil, err
	}
	link, err := vxlan(underlay, parent)
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", vxlanLink, err)
	}
	for _, r := range p.own.ranges {
		one := netip.PrefixFrom(r.Masked().Addr(), r.Addr().BitLen())
		address := &netlink.Addr{IPNet: ipNet(one), Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrReplace(link, address); err != nil {
			return nil, fmt.Errorf("address %s of %s: %w", one, vxlanLink, err)
		}
	}
	return link, errors.Join(dropAddresses(link, p.own.ranges), setNeighbours(link, p.routes))
}

// vxlan returns the link, made again if it is not as it should be.
func vxlan(underlay netip.Addr, parent netlink.Link) (netlink.Link, error) {
	want := &netlink.Vxlan{
		LinkAttrs: netlink.NewLinkAttrs(), VxlanId: vxlanID, Port: vxlanPort,
		SrcAddr: underlay.AsSlice(), VtepDevIndex: parent.Attrs().Index,
	}
	want.Name, want.HardwareAddr, want.MTU = vxlanLink, hardware(underlay), mtuInside(underlay, parent)
	have, err := findVXLAN()
	if err != nil {
		return nil, err
	}
	if have != nil {
		v, ok := have.(*netlink.Vxlan)
		if ok && v.VxlanId == vxlanID && v.Port == vxlanPort && v.SrcAddr.Equal(want.SrcAddr) && v.VtepDevIndex == want.VtepDevIndex &&
			slices.Equal(v.HardwareAddr, want.HardwareAddr) && v.MTU == want.MTU {
			return have, netlink.LinkSetUp(have)
		}
		if err := netlink.LinkDel(have); err != nil {
			return nil, err
		}
	}
	if err := netlink.LinkAdd(want); err != nil {
		return nil, err
	}
	return want, netlink.LinkSetUp(want)
}

// findVXLAN returns the link, or nil.
func findVXLAN() (netlink.Link, error) {
	link, err := netlink.LinkByName(vxlanLink)
	if _, ok := errors.AsType[netlink.LinkNotFoundError](err); ok {
		return nil, nil
	}
	return link, err
}

// removeVXLAN removes what the node had before its mode was changed.
func removeVXLAN() error {
	link, err := findVXLAN()
	if link == nil || err != nil {
		return err
	}
	return netlink.LinkDel(link)
}

// mtuInside is the size of packets that fit, encapsulated, into one of parent's.
func mtuInside(underlay netip.Addr, parent netlink.Link) int {
	size := parent.Attrs().MTU - vxlanOverhead
	if underlay.Is6() {
		size -= 20
	}
	return size
}

// linkWith is the link that has an address.
func linkWith(address netip.Addr) (netlink.Link, error) {
	list, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range list {
		if a.IP.Equal(address.AsSlice()) {
			return netlink.LinkByIndex(a.LinkIndex)
		}
	}
	return nil, fmt.Errorf("no link of this machine has the node's address %s", address)
}

// dropAddresses removes addresses of ranges that the node had before.
func dropAddresses(link netlink.Link, ranges []netip.Prefix) error {
	list, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list addresses of %s: %w", vxlanLink, err)
	}
	var errs []error
	for _, a := range list {
		have := prefixOf(a.IPNet)
		ours := slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Masked().Addr() == have.Addr() })
		if !ours && !have.Addr().IsLinkLocalUnicast() {
			errs = append(errs, netlink.AddrDel(link, &a))
		}
	}
	return errors.Join(errs...)
}

func setNeighbours(link netlink.Link, routes []route) error {
	var errs []error
	type entry struct{ ip, hardware string }
	wanted := map[entry]bool{}
	set := func(family, flags int, ip netip.Addr, hardware net.HardwareAddr) {
		wanted[entry{ip.String(), hardware.String()}] = true
		err := netlink.NeighSet(&netlink.Neigh{
			LinkIndex: link.Attrs().Index, Family: family, Flags: flags, State: netlink.NUD_PERMANENT,
			IP: ip.AsSlice(), HardwareAddr: hardware,
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("neighbour %s at %s: %w", ip, hardware, err))
		}
	}
	for _, r := range routes {
		family := unix.AF_INET
		if r.via.Is6() {
			family = unix.AF_INET6
		}
		set(family, 0, r.via, r.hardware)
		set(unix.AF_BRIDGE, netlink.NTF_SELF, r.underlay, r.hardware)
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6, unix.AF_BRIDGE} {
		list, err := netlink.NeighList(link.Attrs().Index, family)
		if err != nil {
			errs = append(errs, fmt.Errorf("list neighbours: %w", err))
		}
		for _, n := range list {
			ip, _ := netip.AddrFromSlice(n.IP)
			if n.State&netlink.NUD_PERMANENT == 0 || wanted[entry{ip.Unmap().String(), n.HardwareAddr.String()}] {
				continue
			}
			if err := netlink.NeighDel(&n); err != nil && !errors.Is(err, unix.ENOENT) {
				errs = append(errs, fmt.Errorf("remove neighbour %s: %w", n.IP, err))
			}
		}
	}
	return errors.Join(errs...)
}
