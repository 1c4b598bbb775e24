package nodenetwork

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Mode is how packets get from node to node.
type Mode string

const (
	// None leaves the network to others.
	None Mode = "none"
	// Routes sends them to the other node's address, which must be on a link
	// that both nodes share.
	Routes Mode = "routes"
	// VXLAN encapsulates them in UDP between the nodes' addresses, wherever those are.
	VXLAN Mode = "vxlan"
)

// Modes are all of them.
var Modes = []Mode{None, Routes, VXLAN}

// peer is the relevant part of a node.
type peer struct {
	name      string
	addresses []netip.Addr   // of type InternalIP, in the node's order
	ranges    []netip.Prefix // of its pods
}

// address is the peer's first address of a family, invalid if there is none.
func (p *peer) address(is4 bool) netip.Addr {
	i := slices.IndexFunc(p.addresses, func(a netip.Addr) bool { return a.Is4() == is4 })
	if i < 0 {
		return netip.Addr{}
	}
	return p.addresses[i]
}

// route leads to a range of another node's pods. In a VXLAN its gateway is the
// other end's address inside the VXLAN, which has the MAC address hardware,
// which in turn is reached at underlay.
type route struct {
	to       netip.Prefix
	via      netip.Addr
	underlay netip.Addr
	hardware net.HardwareAddr
}

// plan is what the node's network should be.
type plan struct {
	own    peer
	routes []route
	pods   []netip.Prefix // of all nodes, as few as will do
}

// makePlan works out the network of the node called own. Problems name the nodes
// that can't be reached; the rest of the plan is valid.
func makePlan(mode Mode, own string, peers []peer) (p plan, problems []string) {
	peers = slices.SortedFunc(slices.Values(peers), func(a, b peer) int { return cmp.Compare(a.name, b.name) })
	var all []netip.Prefix
	taken := map[netip.Prefix]string{}
	i := slices.IndexFunc(peers, func(q peer) bool { return q.name == own })
	if i >= 0 {
		p.own = peers[i]
	}
	for _, q := range peers {
		for _, r := range q.ranges {
			all = append(all, r)
			if other := taken[r]; other != "" {
				problems = append(problems, fmt.Sprintf("nodes %s and %s both have the range %s", other, q.name, r))
			}
			taken[r] = q.name
			if q.name == own || slices.ContainsFunc(p.own.ranges, r.Overlaps) {
				continue
			}
			way, problem := wayTo(mode, &p.own, &q, r)
			if problem != "" {
				problems = append(problems, problem)
				continue
			}
			p.routes = append(p.routes, way)
		}
	}
	p.pods = aggregate(all)
	return p, problems
}

func wayTo(mode Mode, own, q *peer, r netip.Prefix) (route, string) {
	if mode == Routes {
		via := q.address(r.Addr().Is4())
		if !via.IsValid() {
			return route{}, fmt.Sprintf("node %s has no InternalIP of the family of its pods' range %s", q.name, r)
		}
		return route{to: r, via: via}, ""
	}
	underlay := q.address(own.underlay().Is4())
	if !underlay.IsValid() {
		return route{}, fmt.Sprintf("node %s has no InternalIP of the family of this node's, %s", q.name, own.underlay())
	}
	return route{to: r, via: r.Masked().Addr(), underlay: underlay, hardware: hardware(underlay)}, ""
}

// underlay is this node's outer address of the VXLAN.
func (p *peer) underlay() netip.Addr {
	if a := p.address(true); a.IsValid() {
		return a
	}
	return p.address(false)
}

// hardware is the MAC address in the VXLAN for a node's address: it is derived
// from that, so nodes need not exchange it.
func hardware(underlay netip.Addr) net.HardwareAddr {
	end := underlay.AsSlice()
	if underlay.Is6() {
		sum := sha256.Sum256(end)
		end = sum[:4]
	}
	return append(net.HardwareAddr{0x0a, 0x58}, end...)
}

// aggregate joins ranges that together are a larger one.
func aggregate(ranges []netip.Prefix) []netip.Prefix {
	slices.SortFunc(ranges, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	var out []netip.Prefix
	for _, r := range ranges {
		if n := len(out); n > 0 && out[n-1].Overlaps(r) {
			continue // the larger of two that begin alike comes first
		}
		out = append(out, r)
		for n := len(out); n > 1; n-- {
			a, b := out[n-2], out[n-1]
			if a.Bits() != b.Bits() || a.Bits() == 0 {
				break
			}
			both := netip.PrefixFrom(a.Addr(), a.Bits()-1).Masked()
			if both.Addr() != a.Addr() || !both.Contains(b.Addr()) {
				break
			}
			out = append(out[:n-2], both)
		}
	}
	return out
}
