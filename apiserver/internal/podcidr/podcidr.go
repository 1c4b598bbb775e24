// Package podcidr divides the cluster's range of pod addresses into one range
// per node (Kubernetes docs, "kube-controller-manager", --allocate-node-cidrs,
// --cluster-cidr, --node-cidr-mask-size).
//
// The server's flags and the housekeeping loop that assigns nodes' ranges call
// it. It does not remember which node has which range, only where to look next.
package podcidr

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
)

// maxBits bounds the number of ranges per cluster: 65536.
const maxBits = 16

// Range is a cluster's range of one address family.
type Range struct {
	cluster netip.Prefix
	bits    int // the length of a node's prefix
	next    int // where Free starts to search
}

// New returns the cluster's range, to be divided into ranges with prefixes of
// the given length.
func New(cluster netip.Prefix, bits int) (*Range, error) {
	switch {
	case cluster != cluster.Masked():
		return nil, fmt.Errorf("%s is an address in a range; the range is %s", cluster, cluster.Masked())
	case bits < cluster.Bits() || bits > cluster.Addr().BitLen():
		return nil, fmt.Errorf("%s can't be divided into ranges of /%d", cluster, bits)
	case bits-cluster.Bits() > maxBits:
		return nil, fmt.Errorf("%s contains too many ranges of /%d: the prefix lengths may differ by at most %d", cluster, bits, maxBits)
	}
	return &Range{cluster: cluster, bits: bits}, nil
}

// Is4 reports whether it is an IPv4 range.
func (r *Range) Is4() bool { return r.cluster.Addr().Is4() }

// String is the cluster's range.
func (r *Range) String() string { return r.cluster.String() }

// ErrFull is returned if no range is left.
var ErrFull = errors.New("all ranges are assigned to nodes")

// Free returns a range that overlaps none of those taken. It searches
// round-robin, so that returned ranges are reused as late as possible: others
// may not know yet that their pods are gone.
func (r *Range) Free(taken []netip.Prefix) (netip.Prefix, error) {
	count := 1 << (r.bits - r.cluster.Bits())
	used := make([]bool, count)
	for _, t := range taken {
		if !t.IsValid() || !t.Overlaps(r.cluster) {
			continue
		}
		first, last := 0, count-1
		if t.Bits() > r.cluster.Bits() {
			first = r.index(t.Masked().Addr())
			last = first
			if t.Bits() < r.bits {
				last = first + 1<<(r.bits-t.Bits()) - 1
			}
		}
		for i := first; i <= last; i++ {
			used[i] = true
		}
	}
	for i := range count {
		if at := (r.next + i) % count; !used[at] {
			r.next = (at + 1) % count
			return r.rangeAt(at), nil
		}
	}
	return netip.Prefix{}, ErrFull
}

// index is the number of the range that contains an address.
func (r *Range) index(addr netip.Addr) int {
	n := addressNumber(addr)
	n.Sub(n, addressNumber(r.cluster.Addr()))
	n.Rsh(n, uint(addr.BitLen()-r.bits))
	return int(n.Int64())
}

func (r *Range) rangeAt(index int) netip.Prefix {
	n := big.NewInt(int64(index))
	n.Lsh(n, uint(r.cluster.Addr().BitLen()-r.bits))
	n.Add(n, addressNumber(r.cluster.Addr()))
	raw := n.FillBytes(make([]byte, r.cluster.Addr().BitLen()/8))
	addr, _ := netip.AddrFromSlice(raw)
	return netip.PrefixFrom(addr, r.bits)
}

func addressNumber(addr netip.Addr) *big.Int { return new(big.Int).SetBytes(addr.AsSlice()) }

// Parse reads nodes' ranges; invalid ones are left out.
func Parse(cidrs []string) []netip.Prefix {
	var out []netip.Prefix
	for _, cidr := range cidrs {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			out = append(out, p.Masked())
		}
	}
	return slices.Clip(out)
}
