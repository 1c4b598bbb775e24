package core

// Names of what a kubelet creates on its machine for --node-network. `kctl
// reset` finds it by these names and removes it.
const (
	NodeNetworkName       = "kctl-node-network" // under which plugins store addresses
	NodeNetworkConfig     = "10-kctl.conflist"  // in the directory of CNI configurations
	NodeNetworkBridge     = "kctl-pods"
	NodeNetworkVXLAN      = "kctl-vxlan"
	NodeNetworkMasquerade = "KCTL-POD-MASQ"    // chain of the table nat
	NodeNetworkForward    = "KCTL-POD-FORWARD" // chain of the table filter
	NodeNetworkLoopback   = "KCTL-POD-LOCAL"   // chain of the table mangle
	NodeNetworkOverlay    = "KCTL-POD-OVERLAY" // chain of the table mangle
	NodeNetworkSource     = "KCTL-POD-SOURCE"  // chain of the table mangle
	// NodeNetworkRoutes marks routes among those of the machine (rtnetlink(7),
	// rtm_protocol; numbers from 4 on are for whoever administers it).
	NodeNetworkRoutes = 107
)
