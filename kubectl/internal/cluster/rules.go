package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// loopbackGuard is the rule by which pods don't reach what listens on this machine's loopback.
// The portmap plugin lets the bridge take packets to loopback (route_localnet) once a pod has
// a host port, and any pod with raw sockets can send such packets (CVE-2020-8558).
func (l Layout) loopbackGuard(verb string) []string {
	return []string{"-w", "-t", "mangle", verb, "PREROUTING", "-i", l.Bridge(), "-d", "127.0.0.0/8",
		"-m", "comment", "--comment", l.Network(), "-j", "DROP"}
}

// guardLoopback adds the rule, if it is not there.
func (l Layout) guardLoopback(ctx context.Context) error {
	if runCommand(ctx, "iptables", l.loopbackGuard("-C")...) == nil {
		return nil
	}
	return runCommand(ctx, "iptables", l.loopbackGuard("-A")...)
}

// unguardLoopback removes the rule, if it is there.
func (l Layout) unguardLoopback(ctx context.Context) error {
	if runCommand(ctx, "iptables", l.loopbackGuard("-C")...) != nil {
		return nil
	}
	return runCommand(ctx, "iptables", l.loopbackGuard("-D")...)
}

// hostPortChains are made by the portmap plugin for all networks of a machine
// together; it never removes them.
var hostPortChains = []string{"CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-SETMARK", "CNI-HOSTPORT-MASQ"}

// removeRules removes the iptables rules and chains that carry the name of the
// cluster's network, and the plugins' shared chains if no network uses them
// any more.
func (l Layout) removeRules(ctx context.Context) error {
	if _, err := exec.LookPath("iptables-save"); err != nil {
		return nil // then nobody made any
	}
	rules, err := natRules(ctx)
	if err != nil {
		return err
	}
	errs := []error{l.unguardLoopback(ctx)}
	own := map[string]bool{}
	for _, rule := range rules {
		if !strings.Contains(rule, `name: \"`+l.Network()+`\"`) {
			continue
		}
		errs = append(errs, iptables(ctx, "-D", strings.TrimPrefix(rule, "-A ")))
		if target := jumpTarget(rule); strings.HasPrefix(target, "CNI-") {
			own[target] = true
		}
	}
	for chain := range own {
		errs = append(errs, iptables(ctx, "-F", chain), iptables(ctx, "-X", chain))
	}
	return errors.Join(append(errs, removeSharedChains(ctx))...)
}

// removeSharedChains removes the host-port chains where no port is mapped.
func removeSharedChains(ctx context.Context) error {
	rules, err := natRules(ctx)
	if err != nil {
		return err
	}
	present := false
	for _, rule := range rules {
		if strings.Contains(rule, "CNI-DN-") {
			return nil // some network maps a port
		}
		present = present || strings.Contains(rule, "CNI-HOSTPORT-")
	}
	if !present {
		return nil
	}
	var errs []error
	for _, rule := range rules {
		if strings.HasPrefix(jumpTarget(rule), "CNI-HOSTPORT-") {
			errs = append(errs, iptables(ctx, "-D", strings.TrimPrefix(rule, "-A ")))
		}
	}
	for _, chain := range hostPortChains {
		// It is fine if it is not there.
		_ = iptables(ctx, "-F", chain)
		_ = iptables(ctx, "-X", chain)
	}
	return errors.Join(errs...)
}

// natRules are the lines "-A CHAIN …" of the nat table.
func natRules(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "iptables-save", "-t", "nat").Output()
	if err != nil {
		return nil, fmt.Errorf("iptables-save: %w", err)
	}
	var rules []string
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.HasPrefix(line, "-A ") {
			rules = append(rules, line)
		}
	}
	return rules, nil
}

func jumpTarget(rule string) string {
	_, target, ok := strings.Cut(rule, " -j ")
	if !ok {
		return ""
	}
	target, _, _ = strings.Cut(target, " ")
	return target
}

// iptables runs one command on the nat table; spec is as iptables-save prints it.
func iptables(ctx context.Context, verb, spec string) error {
	args, err := splitFlags(strings.ReplaceAll(spec, `\"`, "\x00"))
	if err != nil {
		return fmt.Errorf("iptables rule %q: %w", spec, err)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "\x00", `"`)
	}
	return runCommand(ctx, "iptables", append([]string{"-w", "-t", "nat", verb}, args...)...)
}
