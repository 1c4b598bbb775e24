package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// Names of systemd-logind on the system's bus (org.freedesktop.login1(5)), and
// of systemd, which tells it to read its configuration again.
const (
	logindName      = "org.freedesktop.login1"
	logindPath      = dbus.ObjectPath("/org/freedesktop/login1")
	logindInterface = "org.freedesktop.login1.Manager"
	prepare         = "PrepareForShutdown"
	systemdName     = "org.freedesktop.systemd1"
	systemdPath     = dbus.ObjectPath("/org/freedesktop/systemd1")
	killUnit        = "org.freedesktop.systemd1.Manager.KillUnit"
	logindUnit      = "systemd-logind.service"
	overrideFile    = "99-kubelet.conf" // upstream's
)

// callTimeout bounds each question to logind.
const callTimeout = 10 * time.Second

// logind manages shutdowns on a machine with systemd.
type logind struct{ bus *dbus.Conn }

func (l logind) object() dbus.BusObject { return l.bus.Object(logindName, logindPath) }

func (l logind) property(ctx context.Context, name string) (value dbus.Variant, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = l.object().CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, logindInterface, name).Store(&value)
	return value, err
}

// inhibitDelay is how long a shutdown waits for inhibitors.
func (l logind) inhibitDelay(ctx context.Context) (time.Duration, error) {
	property, err := l.property(ctx, "InhibitDelayMaxUSec")
	if err != nil {
		return 0, fmt.Errorf("asking logind how long it waits: %w", err)
	}
	microseconds, ok := property.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("logind reports a delay of %v", property)
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}

// preparing says whether a shutdown has begun and was not called off.
func (l logind) preparing(ctx context.Context) (bool, error) {
	property, err := l.property(ctx, "PreparingForShutdown")
	if err != nil {
		return false, fmt.Errorf("asking logind whether the machine is shutting down: %w", err)
	}
	preparing, ok := property.Value().(bool)
	if !ok {
		return false, fmt.Errorf("logind reports for a shutdown: %v", property)
	}
	return preparing, nil
}

// inhibit makes shutdowns wait until the file is closed.
func (l logind) inhibit(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var fd dbus.UnixFD
	err := l.object().CallWithContext(ctx, logindInterface+".Inhibit", 0, "shutdown", "kubelet", "pods are to end in order",
		"delay").Store(&fd)
	if err != nil {
		return nil, fmt.Errorf("asking logind to delay shutdowns: %w", err)
	}
	return os.NewFile(uintptr(fd), "shutdown inhibitor"), nil
}

// watch receives signals about shutdowns that begin or are called off.
func (l logind) watch() (<-chan *dbus.Signal, error) {
	signals := make(chan *dbus.Signal, 8)
	l.bus.Signal(signals)
	err := l.bus.AddMatchSignal(dbus.WithMatchInterface(logindInterface), dbus.WithMatchMember(prepare), dbus.WithMatchObjectPath(logindPath))
	if err != nil {
		return nil, fmt.Errorf("asking the bus for logind's signals: %w", err)
	}
	return signals, nil
}

// raiseInhibitDelay makes logind wait for at least that long, through a file in its
// configuration.
func (l logind) raiseInhibitDelay(ctx context.Context, dir string, least time.Duration) error {
	seconds := int64((least + time.Second - 1) / time.Second)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("directory of logind's configuration: %w", err)
	}
	text := fmt.Sprintf("# Made by the kubelet for shutdownGracePeriod.\n[Login]\nInhibitDelayMaxSec=%d\n", seconds)
	if err := os.WriteFile(filepath.Join(dir, overrideFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("logind's configuration: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	call := l.bus.Object(systemdName, systemdPath).CallWithContext(ctx, killUnit, 0, logindUnit, "all", int32(syscall.SIGHUP))
	if call.Err != nil {
		return fmt.Errorf("making logind read its configuration again: %w", call.Err)
	}
	return nil
}

// ensure makes sure that logind waits long enough. It reads its configuration
// some time after it was told to.
func (m *Manager) ensure(ctx context.Context, l logind) error {
	least := total(m.Periods) + tellWithin
	has, err := l.inhibitDelay(ctx)
	if err != nil || has >= least {
		return err
	}
	if err := l.raiseInhibitDelay(ctx, m.ConfigDir, least); err != nil {
		return err
	}
	for range rereads {
		if has, err = l.inhibitDelay(ctx); err == nil && has >= least {
			return nil
		}
		if m.sleep(ctx, rereadEvery) != nil {
			return ctx.Err()
		}
	}
	return errors.Join(err,
		fmt.Errorf("logind delays shutdowns by InhibitDelayMaxSec=%s, less than the %s needed to end pods and report it to the API server; "+
			"another file in logind's configuration probably sets it", has, least))
}

const (
	rereads     = 20
	rereadEvery = 100 * time.Millisecond
)
