package nodenetwork

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kctl/kubelet/internal/iptables"
	"kctl/proto/core"
)

// Our chains in the tables nat, filter and mangle.
const (
	masquerade = core.NodeNetworkMasquerade
	pass       = core.NodeNetworkForward
	loopback   = core.NodeNetworkLoopback
	overlay    = core.NodeNetworkOverlay
	source     = core.NodeNetworkSource
)

// guardRules keep this node's pods from what is the nodes' own.
//
// The portmap plugin lets the bridge take packets to the node's loopback once a pod has a host port (route_localnet,
// which IPv6 has not), and any pod with raw sockets can send such packets (CVE-2020-8558).
//
// The kernel takes whatever comes to the overlay's port for another node's, and a pod can know all that it asks for:
// in there it could send from any pod's address. Other nodes can't tell such packets from this node's, with whose
// address they leave, so that they are dropped here, wherever they go, as Calico does: once it is settled where they
// go, since a service of a pod in the host's network may lead there, too.
//
// Pods with raw sockets can write any sender into their packets, and network policies and whoever is called judge by it:
// what is none of this node's pods' addresses is dropped before it leaves the bridge. Between the bridge's pods it is
// seen with bridge-nf-call-iptables only. IPv6 needs two others to find its neighbours.
func guardRules(own []netip.Prefix, is4, overlaid bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*mangle\n:%s - [0:0]\n:%s - [0:0]\n", overlay, source)
	senders := slices.Clone(own)
	if !is4 {
		senders = append(senders, netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("::/128"))
	}
	for _, s := range senders {
		fmt.Fprintf(&b, "-A %s -s %s -j RETURN\n", source, s)
	}
	fmt.Fprintf(&b, "-A %s -i %s -j DROP\n", source, core.NodeNetworkBridge)
	if is4 {
		fmt.Fprintf(&b, ":%s - [0:0]\n-A %s -i %s -d 127.0.0.0/8 -j DROP\n", loopback, loopback, core.NodeNetworkBridge)
	}
	if overlaid {
		fmt.Fprintf(&b, "-A %s -i %s -p udp --dport %d -j DROP\n", overlay, core.NodeNetworkBridge, vxlanPort)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// rules are our chains' contents for one address family, as iptables-restore
// takes them: it replaces them in one step.
//
// Pods talk to pods with their own addresses, and to everything else with the
// node's. Packets from and to our pods are forwarded even if the machine's
// policy is to drop them (Docker sets it so); users' rules come first and win.
func rules(own, pods []netip.Prefix, multicast string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*nat\n:%s - [0:0]\n", masquerade)
	for _, o := range own {
		for _, p := range pods {
			fmt.Fprintf(&b, "-A %s -s %s -d %s -j RETURN\n", masquerade, o, p)
		}
		fmt.Fprintf(&b, "-A %s -s %s ! -d %s -j MASQUERADE\n", masquerade, o, multicast)
	}
	fmt.Fprintf(&b, "COMMIT\n*filter\n:%s - [0:0]\n", pass)
	for _, o := range own {
		fmt.Fprintf(&b, "-A %s -s %s -j ACCEPT\n-A %s -d %s -j ACCEPT\n", pass, o, pass, o)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// setRules sets the rules of each address family that the node has ranges of. underlay is the address by which
// packets come that are encapsulated; the zero Addr if none are.
func setRules(ctx context.Context, own, pods []netip.Prefix, underlay netip.Addr) error {
	var errs []error
	for _, f := range []struct {
		command, multicast string
		is4                bool
	}{{iptables.V4, "224.0.0.0/4", true}, {iptables.V6, "ff00::/8", false}} {
		of := func(list []netip.Prefix) []netip.Prefix {
			return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return p.Addr().Is4() != f.is4 })
		}
		overlaid := underlay.IsValid() && underlay.Is4() == f.is4
		if len(of(own)) > 0 {
			err := iptables.Restore(ctx, f.command, rules(of(own), of(pods), f.multicast))
			if err == nil {
				err = errors.Join(jump(ctx, f.command, "nat", "POSTROUTING", masquerade), jump(ctx, f.command, "filter", "FORWARD", pass))
			}
			errs = append(errs, err)
		} else if !overlaid {
			continue
		}
		errs = append(errs, setGuard(ctx, f.command, of(own), f.is4, overlaid))
	}
	return errors.Join(errs...)
}

// setGuard sets guardRules. They are no part of the others, which a machine whose kernel has no
// table mangle needs all the same.
func setGuard(ctx context.Context, command string, own []netip.Prefix, is4, overlaid bool) error {
	if err := iptables.Restore(ctx, command, guardRules(own, is4, overlaid)); err != nil {
		return fmt.Errorf("keep pods from the node's loopback, the overlay's port and others' addresses: %w", err)
	}
	err := errors.Join(jump(ctx, command, "mangle", "INPUT", overlay), jump(ctx, command, "mangle", "FORWARD", overlay),
		jump(ctx, command, "mangle", "PREROUTING", source))
	if is4 {
		err = errors.Join(err, jump(ctx, command, "mangle", "PREROUTING", loopback))
	}
	return err
}

// jump makes one of the kernel's chains jump to one of ours.
func jump(ctx context.Context, program, table, from, to string) error {
	return iptables.Ensure(ctx, program, table, iptables.Last, from, "-m", "comment", "--comment", "pods of this node (kctl)", "-j", to)
}
