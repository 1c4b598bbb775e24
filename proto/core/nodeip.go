package core

import (
	"fmt"
	"net/netip"
	"strings"
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
			return nil, fmt.Errorf("%s is no address by which others reach a node", text)
		}
		if families[ip.Is4()] {
			return nil, fmt.Errorf("%q has two addresses of one family; one, or one IPv4 and one IPv6 address, can be given", flag)
		}
		families[ip.Is4()] = true
		all = append(all, ip.String())
	}
	return all, nil
}
