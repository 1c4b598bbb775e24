package firewall

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/iptables"
	"kctl/proto/backoff"
)

// Names and rules that upstream's kubelet, kube-proxy and others know.
const (
	chain  = "KUBE-FIREWALL"
	hint   = "KUBE-IPTABLES-HINT"
	filter = "filter"
	mangle = "mangle"
)

var (
	jump = []string{"-j", chain}
	drop = []string{
		"-m", "comment", "--comment", "block incoming localnet connections", "--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8",
		"-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP",
	}
)

// rule is one of those that make the guard.
type rule struct {
	place, chain string
	spec         []string
}

// rules are in the order in which they are made.
var rules = []rule{
	{iptables.Last, chain, drop},
	{iptables.First, "OUTPUT", jump},
	{iptables.First, "INPUT", jump},
}

// again is how often the rules are looked at: others may have flushed them.
const again = time.Minute

// Firewall maintains the rules.
type Firewall struct {
	Clock  clock.Clock
	Logger *zap.Logger
}

// Run makes the rules, and makes them again when they are gone, until ctx ends. A machine
// without iptables has none. What fails is told once, and tried again.
func (f *Firewall) Run(ctx context.Context) error {
	if _, err := exec.LookPath(iptables.V4); err != nil {
		f.Logger.Info("no rule protects the node's loopback address: iptables is not installed", zap.Error(err))
		return nil
	}
	told := ""
	for {
		if err := ensure(ctx); err != nil && ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			f.Logger.Warn("what keeps others from the node's loopback is not complete, trying on", zap.Error(err))
		}
		if err := backoff.Sleep(ctx, f.Clock, again); err != nil {
			return err
		}
	}
}

// ensure makes what is not there.
func ensure(ctx context.Context) error {
	var errs []error
	if err := iptables.EnsureChain(ctx, iptables.V4, mangle, hint); err != nil {
		errs = append(errs, fmt.Errorf("chain %s: %w", hint, err))
	}
	// Not each machine has IPv6, which has no such addresses to guard.
	_ = iptables.EnsureChain(ctx, iptables.V6, mangle, hint)
	err := iptables.EnsureChain(ctx, iptables.V4, filter, chain)
	for _, r := range rules {
		if err == nil {
			err = iptables.Ensure(ctx, iptables.V4, filter, r.place, r.chain, r.spec...)
		}
	}
	return errors.Join(append(errs, err)...)
}
