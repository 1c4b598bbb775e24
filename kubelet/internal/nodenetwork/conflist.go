package nodenetwork

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"kctl/proto/core"
	"kctl/proto/pki"
)

// configFile is the name under which runtimes find the network.
const configFile = core.NodeNetworkConfig

// bridge is the link that the node's pods are attached to.
const bridge = core.NodeNetworkBridge

type object = map[string]any

// conflist is the CNI configuration of a node whose pods have addresses from
// ranges: each pod gets one from host-local, is attached to a bridge, and has
// its host ports mapped by portmap. Our own rules masquerade what leaves the
// cluster: the bridge's would do it between nodes, too.
func conflist(ranges []netip.Prefix, mtu int) ([]byte, error) {
	var sets, routes []any
	for _, r := range ranges {
		sets = append(sets, []any{object{"subnet": r.String()}})
		everywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if r.Addr().Is6() {
			everywhere = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		routes = append(routes, object{"dst": everywhere.String()})
	}
	link := object{
		"type": "bridge", "bridge": bridge, "isGateway": true, "forceAddress": true, "hairpinMode": true,
		"ipam": object{"type": "host-local", "ranges": sets, "routes": routes},
	}
	if mtu > 0 {
		link["mtu"] = mtu
	}
	ports := object{"type": "portmap", "capabilities": object{"portMappings": true}}
	text, err := json.MarshalIndent(object{"cniVersion": "0.4.0", "name": core.NodeNetworkName, "plugins": []any{link, ports}}, "", "  ")
	return append(text, '\n'), err
}

// writeConfig writes it only if it has changed: runtimes reload it each time.
func writeConfig(dir string, text []byte) (written bool, err error) {
	path := filepath.Join(dir, configFile)
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, text) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("CNI configuration: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, fmt.Errorf("CNI configuration: %w", err)
	}
	return true, pki.WriteFile(path, text)
}
