package nodenetwork

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"kctl/proto/core"
)

// Our chains in the tables nat, filter and mangle.
const (
	masquerade = core.NodeNetworkMasquerade
	pass       = core.NodeNetworkForward
	loopback   = core.NodeNetworkLoopback
)

// loopbackRules keep pods from what listens on the node's loopback. The portmap plugin lets
// the bridge take packets to there once a pod has a host port (route_localnet, which IPv6 has
// not), and any pod with raw sockets can send such packets (CVE-2020-8558).
var loopbackRules = fmt.Sprintf("*mangle\n:%s - [0:0]\n-A %s -i %s -d 127.0.0.0/8 -j DROP\nCOMMIT\n", loopback, loopback, core.NodeNetworkBridge)

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

// setRules sets the rules of each address family that the node has ranges of.
func setRules(ctx context.Context, own, pods []netip.Prefix) error {
	var errs []error
	for _, f := range []struct {
		command, multicast string
		is4                bool
	}{{"iptables", "224.0.0.0/4", true}, {"ip6tables", "ff00::/8", false}} {
		of := func(list []netip.Prefix) []netip.Prefix {
			return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return p.Addr().Is4() != f.is4 })
		}
		if len(of(own)) == 0 {
			continue
		}
		err := restore(ctx, f.command, rules(of(own), of(pods), f.multicast))
		if err == nil {
			err = errors.Join(jump(ctx, f.command, "nat", "POSTROUTING", masquerade), jump(ctx, f.command, "filter", "FORWARD", pass))
		}
		errs = append(errs, err)
		if f.is4 {
			errs = append(errs, guardLoopback(ctx, f.command))
		}
	}
	return errors.Join(errs...)
}

// guardLoopback sets loopbackRules. They are no part of the others, which a machine whose
// kernel has no table mangle needs all the same.
func guardLoopback(ctx context.Context, command string) error {
	if err := restore(ctx, command, loopbackRules); err != nil {
		return fmt.Errorf("keep pods from the node's loopback: %w", err)
	}
	return jump(ctx, command, "mangle", "PREROUTING", loopback)
}

func restore(ctx context.Context, command, rules string) error {
	return run(ctx, rules, command+"-restore", "-w", "5", "--noflush")
}

// jump makes one of the kernel's chains jump to one of ours.
func jump(ctx context.Context, command, table, from, to string) error {
	rule := []string{from, "-m", "comment", "--comment", "pods of this node (kctl)", "-j", to}
	if run(ctx, "", command, append([]string{"-w", "5", "-t", table, "-C"}, rule...)...) == nil {
		return nil
	}
	return run(ctx, "", command, append([]string{"-w", "5", "-t", table, "-A"}, rule...)...)
}

func run(ctx context.Context, input, command string, args ...string) error {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, bytes.TrimSpace(out))
	}
	return nil
}
