package config

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"kctl/apiserver/internal/podcidr"
)

// defaultNodeGrace is upstream's.
const defaultNodeGrace = 50 * time.Second

// defaultLegacyTokenPeriod is upstream's.
const defaultLegacyTokenPeriod = 365 * 24 * time.Hour

// NodeRanges are the flags for nodes' pod ranges. In upstream they are
// kube-controller-manager's, whose loop this is.
type NodeRanges struct {
	Allocate     bool
	Clusters     []string // of one or of both families
	Size         int      // of the prefixes of nodes; 0 for the defaults
	Size4, Size6 int
}

// Upstream's default prefix lengths.
const (
	defaultSize4 = 24
	defaultSize6 = 64
)

func (n *NodeRanges) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&n.Allocate, "allocate-node-cidrs", n.Allocate, "assign each node a range from --cluster-cidr for its pods (spec.podCIDRs)")
	fs.StringSliceVar(&n.Clusters, "cluster-cidr", n.Clusters, "range of all pod addresses; for dual stack, one IPv4 and one IPv6 range")
	fs.IntVar(&n.Size, "node-cidr-mask-size", n.Size,
		"prefix length of node ranges in single-stack clusters (default 24 for IPv4 and 64 for IPv6)")
	fs.IntVar(&n.Size4, "node-cidr-mask-size-ipv4", n.Size4, "prefix length of node IPv4 ranges (default 24)")
	fs.IntVar(&n.Size6, "node-cidr-mask-size-ipv6", n.Size6, "prefix length of node IPv6 ranges (default 64)")
}

// Ranges are those from which nodes get theirs; none if not requested.
func (n *NodeRanges) Ranges() ([]*podcidr.Range, error) {
	if !n.Allocate {
		return nil, nil
	}
	if len(n.Clusters) == 0 {
		return nil, errors.New("--allocate-node-cidrs: requires --cluster-cidr")
	}
	if len(n.Clusters) > 2 {
		return nil, errors.New("--cluster-cidr: at most two ranges are allowed, one IPv4 and one IPv6")
	}
	if n.Size != 0 && (len(n.Clusters) > 1 || n.Size4 != 0 || n.Size6 != 0) {
		return nil, errors.New(
			"--node-cidr-mask-size requires a single --cluster-cidr; with two, use --node-cidr-mask-size-ipv4 " +
				"and --node-cidr-mask-size-ipv6")
	}
	var out []*podcidr.Range
	for _, text := range n.Clusters {
		cluster, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--cluster-cidr=%s: not a range of addresses such as 10.244.0.0/16", text)
		}
		r, err := podcidr.New(cluster, n.size(cluster.Addr().Is4()))
		if err != nil {
			return nil, fmt.Errorf("--cluster-cidr=%s: %w", text, err)
		}
		if len(out) == 1 && out[0].Is4() == r.Is4() {
			return nil, errors.New("--cluster-cidr: two ranges must be one IPv4 and one IPv6 range")
		}
		out = append(out, r)
	}
	return out, nil
}

func (n *NodeRanges) size(is4 bool) int {
	size, otherwise := n.Size6, defaultSize6
	if is4 {
		size, otherwise = n.Size4, defaultSize4
	}
	for _, s := range []int{n.Size, size} {
		if s != 0 {
			return s
		}
	}
	return otherwise
}

// validateNodeRanges requires leader election: the loop learns from the stored
// nodes what other servers assigned, so only one may assign at a time.
func (o *Options) validateNodeRanges() error {
	if o.NodeMonitorGrace < time.Second {
		return fmt.Errorf("--node-monitor-grace-period=%s: must be at least 1s", o.NodeMonitorGrace)
	}
	_, err := o.NodeRanges.Ranges()
	if err == nil && o.NodeRanges.Allocate && !o.Operation.LeaderElect.Enabled {
		err = errors.New("--allocate-node-cidrs: requires --leader-elect; otherwise two servers could assign one range to two nodes")
	}
	if err == nil && !o.NodeRanges.Allocate && len(o.NodeRanges.Clusters) > 0 {
		err = errors.New("--cluster-cidr: requires --allocate-node-cidrs")
	}
	return err
}
