// Package firewall keeps others from what listens on the node's loopback only
// (CVE-2020-8558): it drops packets to 127.0.0.0/8 that come from elsewhere and belong to
// no connection that was made or translated here. It does so in upstream's chain, which
// kube-proxy has too, with the same rule, so that none of them adds it twice. A chain
// without rules (KUBE-IPTABLES-HINT) tells other programs of the node which of the two
// kinds of iptables is in use.
//
// The kubelet runs it, unless makeIPTablesUtilChains is false; a hollow one never does.
// It removes nothing, not even its own rules at the end: others may rely on them by then.
// The networks of nodenetwork have a stricter guard of their own, for their bridge.
package firewall
