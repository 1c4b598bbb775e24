// Package shutdowntest gives tests a message bus of their own with a fake
// systemd-logind on it: a machine can't be shut down in a test.
//
// Only tests call it. It needs Debian's dbus-daemon, and removes everything
// when the test ends.
package shutdowntest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"

	"kctl/proto/eventually"
)

const (
	logindName       = "org.freedesktop.login1"
	logindPath       = dbus.ObjectPath("/org/freedesktop/login1")
	logindInterface  = "org.freedesktop.login1.Manager"
	logindUnit       = "systemd-logind.service"
	systemdName      = "org.freedesktop.systemd1"
	systemdPath      = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdInterface = "org.freedesktop.systemd1.Manager"
)

// StartBus runs a message bus of the test's own.
func StartBus(t *testing.T) (address string, stop func()) {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("skipped: needs dbus-daemon (Debian: apt-get install dbus-daemon)")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "bus.conf")
	text := fmt.Sprintf(`<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><listen>unix:path=%s</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`,
		filepath.Join(dir, "bus"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The bus ends with its standard input, which the kernel closes if the test
	// panics.
	cmd := exec.Command("sh", "-c", `"$@" & read -r _; kill -KILL $!; wait`, "sh", daemon, "--config-file="+config, "--nofork", "--nopidfile",
		"--nosyslog", "--print-address")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	life, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _ = life.Close(); _ = cmd.Wait() })
	t.Cleanup(stop)
	address, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the bus did not start: %v", err)
	}
	return strings.TrimSpace(address), stop
}

// Logind is the part of logind and systemd that a kubelet uses.
type Logind struct {
	t   *testing.T
	bus *dbus.Conn
	// Dir is the directory of its configuration, unless it is Deaf.
	Dir        string
	Deaf       bool
	properties *prop.Properties
	mu         sync.Mutex
	locks      []*os.File // our end of each lock: it is closed when the kubelet's is
}

// StartLogind starts a logind on a bus that delays shutdowns for that long.
func StartLogind(t *testing.T, address string, delay time.Duration) *Logind {
	t.Helper()
	l := &Logind{t: t, bus: connect(t, address), Dir: t.TempDir()}
	var err error
	l.properties, err = prop.Export(l.bus, logindPath, prop.Map{logindInterface: {
		"InhibitDelayMaxUSec":  {Value: uint64(delay.Microseconds())},
		"PreparingForShutdown": {Value: false},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []struct {
		name  string
		path  dbus.ObjectPath
		iface string
		calls map[string]any
	}{
		{logindName, logindPath, logindInterface, map[string]any{"Inhibit": l.inhibit}},
		{systemdName, systemdPath, systemdInterface, map[string]any{"KillUnit": l.killUnit}},
	} {
		if err := l.bus.ExportMethodTable(service.calls, service.path, service.iface); err != nil {
			t.Fatal(err)
		}
		if reply, err := l.bus.RequestName(service.name, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
			t.Fatalf("name %s: %v, %v", service.name, reply, err)
		}
	}
	return l
}

func connect(t *testing.T, address string) *dbus.Conn {
	t.Helper()
	bus, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	return bus
}

func (l *Logind) inhibit(what, _, _, mode string) (dbus.UnixFD, *dbus.Error) {
	if what != "shutdown" || mode != "delay" {
		return 0, dbus.MakeFailedError(fmt.Errorf("%s, %s", what, mode))
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locks = append(l.locks, ours)
	l.t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return dbus.UnixFD(theirs.Fd()), nil // the bus sends a copy
}

// Held says whether somebody else has the last lock.
func (l *Logind) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.locks) == 0 {
		return false
	}
	pipe, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", l.locks[len(l.locks)-1].Fd()))
	if err != nil {
		l.t.Fatal(err)
	}
	count := 0
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range open {
		if link, err := os.Readlink(fd); err == nil && link == pipe {
			count++
		}
	}
	return count > 2 // both ends are ours
}

// Await waits until the last lock is held, or no longer held.
func (l *Logind) Await(what string, held bool) {
	l.t.Helper()
	eventually.Holds(l.t, what, func() bool { return l.Held() == held })
}

// Announce reports that a shutdown begins, or is called off.
func (l *Logind) Announce(begins bool) {
	l.t.Helper()
	l.properties.SetMust(logindInterface, "PreparingForShutdown", begins)
	if err := l.bus.Emit(logindPath, logindInterface+".PrepareForShutdown", begins); err != nil {
		l.t.Fatal(err)
	}
}

func (l *Logind) killUnit(unit, _ string, _ int32) *dbus.Error {
	data, err := os.ReadFile(filepath.Join(l.Dir, "99-kubelet.conf"))
	if err != nil || unit != logindUnit {
		return dbus.MakeFailedError(fmt.Errorf("%s: %w", unit, err))
	}
	var seconds uint64
	at := strings.Index(string(data), "InhibitDelayMaxSec=")
	if _, err := fmt.Sscanf(string(data[at:]), "InhibitDelayMaxSec=%d", &seconds); err != nil {
		return dbus.MakeFailedError(err)
	}
	if !l.Deaf {
		l.properties.SetMust(logindInterface, "InhibitDelayMaxUSec", seconds*1e6)
	}
	return nil
}
