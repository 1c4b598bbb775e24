// Package serviceranges says what the ranges of services' addresses have to
// give: which addresses there are in the CIDRs of ServiceCIDRs (KEP-1880), and
// in which order they are tried (KEP-3070).
//
// The store of services, which gives addresses, and the house-keeping loops
// that look after ranges and addresses call it. It keeps nothing: what there is
// to give is in ServiceCIDRs, what is given in IPAddresses.
package serviceranges

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of are the CIDRs of a ServiceCIDR; what can't be read is left out.
func Of(c *networkingv1.ServiceCIDR) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range c.Spec.CIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}

// Ready says whether new addresses may be given of a ServiceCIDR. One of which
// nobody has said anything is ready: the loop that would may run nowhere.
func Ready(c *networkingv1.ServiceCIDR) bool {
	if c.DeletionTimestamp != nil {
		return false
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	return ready == nil || ready.Status == metav1.ConditionTrue
}

// widest is how many bits of an address may differ in a range that addresses
// are given of: wider ones of IPv6 are not used, as upstream has it.
const widest = 64

// Gives says whether a service may have this address of the range: it is
// neither the network's own nor, of IPv4, the one for broadcasts.
func Gives(r netip.Prefix, addr netip.Addr) bool {
	if !r.Contains(addr) || r.Addr().BitLen()-r.Bits() > widest {
		return false
	}
	n := offset(r, addr)
	return n >= 1 && n <= Size(r)
}

// First is the first address that the range gives.
func First(r netip.Prefix) netip.Addr { return at(r, 1) }

// Addresses are all addresses that the range gives, in the order in which they
// are tried for a service that doesn't say which it wants: those that are not
// kept for services that do, from anywhere among them, and only then these.
func Addresses(r netip.Prefix) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		all, kept := Size(r), kept(r)
		for _, band := range []struct{ behind, count uint64 }{{kept, all - kept}, {0, kept}} {
			if band.count == 0 {
				continue
			}
			for i, start := uint64(0), rand.Uint64N(band.count); i < band.count; i++ {
				step := start + i
				if step >= band.count || step < start { // it goes round
					step -= band.count
				}
				if !yield(at(r, band.behind+1+step)) {
					return
				}
			}
		}
	}
}

// Size is how many addresses a range gives.
func Size(r netip.Prefix) uint64 {
	bits := r.Addr().BitLen() - r.Bits()
	if bits > widest {
		return 0
	}
	last := ^uint64(0) >> (widest - bits) // 0 where bits is 0
	if r.Addr().Is4() && last > 0 {
		last--
	}
	return last
}

// kept is how many addresses at the beginning of a range are given last, so that
// services that name theirs find it free.
func kept(r netip.Prefix) uint64 {
	const least, most, part = 16, 256, 16
	bits := r.Addr().BitLen() - r.Bits()
	if bits > widest || bits <= 4 {
		return 0
	}
	return min(max(uint64(1)<<min(bits, 16)/part, least), most)
}

// at is the nth address of a range, counted from the network's own.
func at(r netip.Prefix, n uint64) netip.Addr {
	raw := r.Masked().Addr().As16()
	low := binary.BigEndian.Uint64(raw[8:])
	binary.BigEndian.PutUint64(raw[8:], low+n) // the range is not wider than that
	addr := netip.AddrFrom16(raw)
	if r.Addr().Is4() {
		return addr.Unmap()
	}
	return addr
}

// offset is which address of the range addr is.
func offset(r netip.Prefix, addr netip.Addr) uint64 {
	raw, from := addr.As16(), r.Masked().Addr().As16()
	return binary.BigEndian.Uint64(raw[8:]) - binary.BigEndian.Uint64(from[8:])
}
