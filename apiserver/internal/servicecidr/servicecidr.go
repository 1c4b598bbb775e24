// Package servicecidr knows which addresses of ServiceCIDRs services may have
// (KEP-1880), and in which order they are tried (KEP-3070).
//
// The store of services, which assigns addresses, and the housekeeping loops
// for ranges and addresses call it. It has no state: ServiceCIDRs say what can
// be assigned, IPAddresses what is.
package servicecidr

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of are the CIDRs of a ServiceCIDR; unreadable ones are left out.
func Of(c *networkingv1.ServiceCIDR) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range c.Spec.CIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}

// Ready reports whether new addresses may be assigned from a ServiceCIDR. One
// without the condition is ready: the loop that sets it may not be running.
func Ready(c *networkingv1.ServiceCIDR) bool {
	if c.DeletionTimestamp != nil {
		return false
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	return ready == nil || ready.Status == metav1.ConditionTrue
}

// maxHostBits is the number of bits by which addresses in a range may differ: wider
// IPv6 ranges are not used entirely, as in upstream.
const maxHostBits = 64

// Assignable reports whether a service may have this address of the range: it is
// neither the network's address nor, for IPv4, the broadcast address.
func Assignable(r netip.Prefix, addr netip.Addr) bool {
	if !r.Contains(addr) || r.Addr().BitLen()-r.Bits() > maxHostBits {
		return false
	}
	n := offset(r, addr)
	return n >= 1 && n <= Size(r)
}

// First is the first address that can be assigned.
func First(r netip.Prefix) netip.Addr { return addressAt(r, 1) }

// Addresses yields all addresses that can be assigned, in the order in which
// they are tried for a service that requests none in particular: first those
// not reserved for services that do, starting anywhere among them, and then the
// reserved ones.
func Addresses(r netip.Prefix) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		all, kept := Size(r), reservedSize(r)
		for _, band := range []struct{ behind, count uint64 }{{kept, all - kept}, {0, kept}} {
			if band.count == 0 {
				continue
			}
			for i, start := uint64(0), rand.Uint64N(band.count); i < band.count; i++ {
				step := start + i
				if step >= band.count || step < start { // it wraps around
					step -= band.count
				}
				if !yield(addressAt(r, band.behind+1+step)) {
					return
				}
			}
		}
	}
}

// Size is the number of addresses that can be assigned.
func Size(r netip.Prefix) uint64 {
	bits := r.Addr().BitLen() - r.Bits()
	if bits > maxHostBits {
		return 0
	}
	last := ^uint64(0) >> (maxHostBits - bits) // 0 if bits is 0
	if r.Addr().Is4() && last > 0 {
		last--
	}
	return last
}

// reservedSize is how many addresses at the beginning of a range are assigned last, so
// that services that request one find it free.
func reservedSize(r netip.Prefix) uint64 {
	const least, most, part = 16, 256, 16
	bits := r.Addr().BitLen() - r.Bits()
	if bits > maxHostBits || bits <= 4 {
		return 0
	}
	return min(max(uint64(1)<<min(bits, 16)/part, least), most)
}

// addressAt is the nth address of a range, counted from the network address.
func addressAt(r netip.Prefix, n uint64) netip.Addr {
	raw := r.Masked().Addr().As16()
	low := binary.BigEndian.Uint64(raw[8:])
	binary.BigEndian.PutUint64(raw[8:], low+n) // the range is not wider than that
	addr := netip.AddrFrom16(raw)
	if r.Addr().Is4() {
		return addr.Unmap()
	}
	return addr
}

// offset is the index of addr in the range.
func offset(r netip.Prefix, addr netip.Addr) uint64 {
	raw, from := addr.As16(), r.Masked().Addr().As16()
	return binary.BigEndian.Uint64(raw[8:]) - binary.BigEndian.Uint64(from[8:])
}
