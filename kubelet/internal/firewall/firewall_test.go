package firewall

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/netnstest"
)

func command(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v %s", line, err, out)
	}
	return string(out)
}

// rounds is a clock on which each timer fires at once, after the next of steps; the one behind the
// last does not, and ctx ends.
type rounds struct {
	clock.Clock
	steps []func()
	end   func()
}

func (r *rounds) NewTimer(time.Duration) clock.Timer {
	if len(r.steps) == 0 {
		r.end()
		return r.Clock.NewTimer(time.Hour)
	}
	r.steps[0]()
	r.steps = r.steps[1:]
	return r.Clock.NewTimer(0)
}

// run runs a Firewall until each of steps was done, and returns what it has logged.
func run(t *testing.T, steps ...func()) []observer.LoggedEntry {
	t.Helper()
	core, logged := observer.New(zap.InfoLevel)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := &Firewall{Clock: &rounds{clock.RealClock{}, steps, cancel}, Logger: zap.New(core)}
	_ = f.Run(ctx) // context.Canceled, or nil
	return logged.All()
}

func TestLoopbackIsGuarded(t *testing.T) {
	netnstest.Inside(t, func() {
		for _, line := range []string{
			"link set lo up", "link add pods type bridge", "address add 192.0.2.1/24 dev pods", "link set pods up",
			"link add pod type veth peer name port", "link set port master pods", "link set port up", "link set pod up",
		} {
			command(t, "ip "+line)
		}
		if err := exec.CommandContext(t.Context(), "sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/pods/route_localnet").Run(); err != nil {
			t.Error(err)
			return
		}
		w := newWire(t)
		arrives := func(when, want string, addresses ...string) {
			t.Helper()
			if got := w.firstOf(addresses...); got != want {
				t.Errorf("%s: what arrives first is a packet to %s, want %s", when, got, want)
			}
		}
		arrives("without anything", "127.0.0.1", "127.0.0.1", "192.0.2.1")
		command(t, "iptables -A INPUT -s 198.51.100.1 -j ACCEPT")
		command(t, "iptables -N "+chain) // kube-proxy was first, with another rule
		command(t, "iptables -A "+chain+" -s 203.0.113.1 -j DROP")
		guarded := func() {
			arrives("guarded", "192.0.2.1", "127.0.0.1", "127.1.2.3", "192.0.2.1")
			rules := command(t, "iptables-save -t filter")
			for text, times := range map[string]int{"-A INPUT -j " + chain: 1, "-A OUTPUT -j " + chain: 1, "block incoming localnet connections": 1, "203.0.113.1": 1,
				"198.51.100.1": 1} {
				if strings.Count(rules, text) != times {
					t.Errorf("not %d times %q in\n%s", times, text, rules)
				}
			}
			for _, program := range []string{"iptables", "ip6tables"} {
				if chains := command(t, program+" -t mangle -S"); !strings.Contains(chains, "-N "+hint) {
					t.Errorf("no %s in\n%s", hint, chains)
				}
			}
		}
		logged := run(t, guarded, func() {
			command(t, "iptables -F INPUT")
			command(t, "iptables -A INPUT -s 198.51.100.1 -j ACCEPT")
			arrives("flushed", "127.0.0.1", "127.0.0.1", "192.0.2.1")
		}, guarded, func() { // the hint alone
			command(t, "iptables -t mangle -X "+hint)
			command(t, "ip6tables -t mangle -X "+hint)
		}, guarded)
		if len(logged) != 0 {
			t.Errorf("logged %v", logged)
		}
		// What kube-proxy translates, for node ports on loopback, passes.
		command(t, fmt.Sprintf("iptables -t nat -A PREROUTING -p udp -d 192.0.2.9 -j DNAT --to-destination 127.0.0.1:%d", w.port))
		arrives("translated", "192.0.2.9", "127.0.0.1", "192.0.2.9")
	})
}

// Without iptables, and with one that can do nothing here, the kubelet goes on, and says so once.
func TestNoRulesCanBeMade(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if logged := run(t); len(logged) != 1 || logged[0].Level != zap.InfoLevel || !strings.Contains(logged[0].Message, "iptables is not installed") {
		t.Errorf("without iptables: %v", logged)
	}
	for _, program := range []string{"iptables", "ip6tables"} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\necho you must be root; exit 4\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	again := func() {}
	logged := run(t, again, again)
	if len(logged) != 1 || logged[0].Level != zap.WarnLevel || !strings.Contains(fmt.Sprint(logged[0].ContextMap()["error"]), "you must be root") {
		t.Errorf("without rights: %v", logged)
	}
}
