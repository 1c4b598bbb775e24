package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// The programs for the two address families.
const (
	V4 = "iptables"
	V6 = "ip6tables"
)

// Where Ensure puts a rule that is not there.
const (
	First = "-I"
	Last  = "-A"
)

// wait is how many seconds to wait for others who change rules.
var wait = []string{"-w", "5"}

// Restore replaces the chains that rules, a text as iptables-save prints it, declares, in
// one step.
func Restore(ctx context.Context, program, rules string) error {
	return run(ctx, rules, program+"-restore", append(wait[:2:2], "--noflush")...)
}

// Ensure makes sure that a chain has a rule. What only could not be found out, because
// somebody else holds the rules for too long, is an error: the rule would be there twice.
func Ensure(ctx context.Context, program, table, place, chain string, rule ...string) error {
	err := check(ctx, program, table, chain, rule)
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) || exit.ExitCode() != notThere {
		return err
	}
	return onTable(ctx, program, table, append([]string{place, chain}, rule...))
}

// notThere is the programs' exit code if a rule or its chain does not exist.
const notThere = 1

func check(ctx context.Context, program, table, chain string, rule []string) error {
	return onTable(ctx, program, table, append([]string{"-C", chain}, rule...))
}

// EnsureChain makes sure that a chain exists, and leaves what is in it.
func EnsureChain(ctx context.Context, program, table, chain string) error {
	there := func() bool { return onTable(ctx, program, table, []string{"-S", chain}) == nil }
	if there() {
		return nil
	}
	err := onTable(ctx, program, table, []string{"-N", chain})
	if err != nil && there() { // somebody else's, by now
		return nil
	}
	return err
}

func onTable(ctx context.Context, program, table string, args []string) error {
	return run(ctx, "", program, append(append(wait[:2:2], "-t", table), args...)...)
}

func run(ctx context.Context, input, command string, args ...string) error {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = time.Second // what a wrapper has started may outlive it, and keep its output open
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, bytes.TrimSpace(out))
	}
	return nil
}
