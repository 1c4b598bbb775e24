package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/zap"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/proto/backoff"
	"kctl/proto/core"
)

// The messages of pods that end, or don't start, because of a shutdown;
// upstream's words.
const (
	Reason          = "Terminated"
	Message         = "Pod was terminated in response to imminent node shutdown."
	RejectedReason  = "NodeShutdown"
	RejectedMessage = "Pod was rejected as the node is shutting down."
	NotReady        = "node is shutting down"
)

// ConfigDir is logind's directory of configuration files.
const ConfigDir = "/etc/systemd/logind.conf.d"

// Options are what a Manager works on. All are needed.
type Options struct {
	Periods   []Period // as from Periods; at least one
	Connect   func() (*dbus.Conn, error)
	ConfigDir string
	// Pods are those that may have something running.
	Pods func() []*core.Pod
	// End starts ending a pod with at most the given seconds of grace, and closes
	// done when it has ended.
	End func(pod *core.Pod, grace int64, done chan<- struct{})
	// StatusesSent is closed when the API has the final statuses of the ended pods.
	StatusesSent func() <-chan struct{}
	// Changed is called when a shutdown begins, and when it is called off.
	Changed func()
	Clock   clock.Clock
	Logger  *zap.Logger
}

// Manager waits for one shutdown. It is safe for concurrent use.
type Manager struct {
	Options
	down atomic.Bool
}

// New returns a Manager that does nothing before Run.
func New(o Options) *Manager { return &Manager{Options: o} }

// ShuttingDown tells whether the machine is about to be shut down. A nil Manager
// never knows.
func (m *Manager) ShuttingDown() bool { return m != nil && m.down.Load() }

var retry = backoff.Policy{Initial: time.Second, Max: time.Minute, Jitter: 0.2}

func (m *Manager) sleep(ctx context.Context, d time.Duration) error {
	return backoff.Sleep(ctx, m.Clock, d)
}

// Run delays shutdowns, and ends pods when one comes, until ctx ends. If it can't
// reach logind, it reports that and keeps trying.
func (m *Manager) Run(ctx context.Context) error {
	for failures := 0; ctx.Err() == nil; {
		held, err := m.session(ctx)
		if ctx.Err() != nil {
			break
		}
		if held {
			failures = 0
		}
		failures++
		if failures == 1 {
			m.Logger.Warn("shutdowns of the machine do not wait for pods now, will retry", zap.Error(err))
		}
		_ = m.sleep(ctx, retry.Delay(failures))
	}
	return ctx.Err()
}

var errBusGone = errors.New("the connection to the system's bus broke off")

// session is one connection to the bus and ends with it. held says that
// shutdowns were delayed meanwhile.
func (m *Manager) session(ctx context.Context) (held bool, err error) {
	bus, err := m.Connect()
	if err != nil {
		return false, fmt.Errorf("the system's bus: %w", err)
	}
	defer bus.Close()
	l := logind{bus}
	if err := m.ensure(ctx, l); err != nil {
		return false, err
	}
	signals, err := l.watch()
	if err != nil {
		return false, err
	}
	lock, err := l.inhibit(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Close() }() // twice is harmless
	if err := m.catchUp(ctx, l); err != nil {
		return true, err
	}
	m.Logger.Info("shutdowns of the machine wait for pods", zap.Duration("for", total(m.Periods)))
	for {
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case signal, open := <-signals:
			if !open {
				return true, errBusGone
			}
			if lock, err = m.handleSignal(ctx, l, signal, lock); err != nil {
				return true, err
			}
		}
	}
}

// catchUp learns that a shutdown was called off while nobody listened:
// otherwise the node would never take pods again.
func (m *Manager) catchUp(ctx context.Context, l logind) error {
	if !m.down.Load() {
		return nil
	}
	preparing, err := l.preparing(ctx)
	if err == nil && !preparing {
		m.Logger.Info("the machine's shutdown was called off")
		m.down.Store(false)
		m.Changed()
	}
	return err
}

// handleSignal acts on one signal, and returns the lock that is held afterwards.
func (m *Manager) handleSignal(ctx context.Context, l logind, signal *dbus.Signal, lock *os.File) (*os.File, error) {
	if signal.Name != logindInterface+"."+prepare || len(signal.Body) != 1 {
		return lock, nil
	}
	begins, ok := signal.Body[0].(bool)
	if !ok || begins == m.down.Swap(begins) {
		return lock, nil
	}
	m.Changed()
	if !begins {
		m.Logger.Info("the machine's shutdown was called off")
		return l.inhibit(ctx)
	}
	m.endAll(ctx)
	m.reportShutdown(ctx)
	m.Logger.Info("the machine may shut down now")
	return lock, lock.Close()
}

// endAll ends group after group, each within its period.
func (m *Manager) endAll(ctx context.Context) {
	for i, pods := range groupByPriority(m.Periods, m.Pods()) {
		p := m.Periods[i]
		if len(pods) == 0 {
			continue
		}
		m.Logger.Info("ending pods for the machine's shutdown",
			zap.Int32("priority", p.Priority), zap.Int("pods", len(pods)), zap.Duration("within", p.Grace))
		m.endGroup(ctx, pods, p.Grace)
	}
}

// tellWithin bounds how long the machine waits for an API server that may have been
// shut down before it.
const tellWithin = 5 * time.Second

// reportShutdown waits until the API knows what became of the pods. Later that would be
// impossible: to everyone else they would seem to be running until the node is
// back.
func (m *Manager) reportShutdown(ctx context.Context) {
	timer := m.Clock.NewTimer(tellWithin)
	defer timer.Stop()
	select {
	case <-m.StatusesSent():
	case <-timer.C():
		m.Logger.Warn("not all pods' ends were reported to the API server before the machine's shutdown")
	case <-ctx.Done():
	}
}

func (m *Manager) endGroup(ctx context.Context, pods []*core.Pod, within time.Duration) {
	timer := m.Clock.NewTimer(within)
	defer timer.Stop()
	ended := make([]chan struct{}, len(pods))
	for i, pod := range pods {
		grace := int64(within / time.Second)
		ended[i] = make(chan struct{})
		m.End(pod, min(grace, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, grace)), ended[i])
	}
	for i, done := range ended {
		select {
		case <-done:
		case <-timer.C():
			m.Logger.Warn("pods did not end before the machine's shutdown", zap.Int("pods", len(ended)-i))
			return
		case <-ctx.Done():
			return
		}
	}
}
