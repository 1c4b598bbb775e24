package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
)

// manager is a service manager's end of the notification socket.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func newManager(t *testing.T) manager {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	return manager{t, conn}
}

func (m manager) hears(want string) {
	m.t.Helper()
	buf := make([]byte, 256)
	_ = m.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if n, err := m.conn.Read(buf); err != nil || string(buf[:n]) != want {
		m.t.Errorf("told %q, %v; want %q", buf[:n], err, want)
	}
}

// silent checks that nothing was sent.
func (m manager) silent() {
	m.t.Helper()
	buf := make([]byte, 256)
	_ = m.conn.SetReadDeadline(time.Unix(1, 0))
	if n, err := m.conn.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		m.t.Errorf("told %q, %v; want nothing", buf[:n], err)
	}
}

func TestNotify(t *testing.T) {
	if err := notify("READY=1"); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
	m := newManager(t)
	Waiting("etcd", zap.NewNop())
	m.hears("STATUS=waiting for etcd")
	Ready(zap.NewNop())
	m.hears("READY=1\nSTATUS=")

	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	core, logs := observer.New(zap.WarnLevel)
	Ready(zap.New(core))
	if logs.Len() != 1 {
		t.Errorf("a manager that is gone: %d lines in the log, want one", logs.Len())
	}
}

// asked is a fake clock that reports waits for it.
type asked struct {
	*testclock.FakeClock
	calls chan struct{}
}

func (a asked) NewTimer(d time.Duration) clock.Timer {
	timer := a.FakeClock.NewTimer(d)
	a.calls <- struct{}{}
	return timer
}

func TestWatchdogPingsWhileAlive(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "60000000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	var broken atomic.Bool
	health := NewHealth()
	health.Add("loop", func(context.Context) error {
		if broken.Load() {
			return errors.New("it stands still")
		}
		return nil
	}, Livez)
	health.Add("elsewhere", func(context.Context) error { return errors.New("a new start does not mend it") }, Livez)
	clock := asked{testclock.NewFakeClock(time.Now()), make(chan struct{}, 1)}
	core, logs := observer.New(zap.ErrorLevel)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Watchdog(ctx, health, clock, zap.New(core), "elsewhere") }()
	next := func() {
		clock.Step(30 * time.Second)
		<-clock.calls // it has checked, and waits again
	}

	<-clock.calls
	m.hears("WATCHDOG=1")
	next()
	m.hears("WATCHDOG=1")
	broken.Store(true)
	next()
	if why := logs.All()[0].ContextMap()["error"]; why != "loop: it stands still" {
		t.Errorf("the log says why: %v", why)
	}
	m.silent()
	broken.Store(false)
	next()
	m.hears("WATCHDOG=1")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestWatchdogWithoutOne(t *testing.T) {
	for _, tc := range []struct{ microseconds, pid, says string }{
		{"", "", ""},
		{"1000000", "1", ""}, // for another process
		{"often", "", `$WATCHDOG_USEC="often"`},
		{"0", "", "not a number"},
		{"-5", "", "not a number"},
		{"9223372036854775807", "", "not a number"},
	} {
		m := newManager(t)
		t.Setenv("WATCHDOG_USEC", tc.microseconds)
		t.Setenv("WATCHDOG_PID", tc.pid)
		err := Watchdog(t.Context(), NewHealth(), testclock.NewFakeClock(time.Now()), zap.NewNop())
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v: %v", tc, err)
		}
		m.silent()
	}
}
