// Package syncloop is the kubelet's one place where everything that happens
// comes together: changes of what is desired, events of the runtime, results
// of probes, and the passing of time. It routes each to the Handler and
// decides nothing itself.
//
// The kubelet runs it. Handlers must not block on a single pod.
package syncloop

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/pleg"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

// Handler handles what happens to pods. All calls come from the loop's
// goroutine.
type Handler interface {
	// HandlePodAdditions handles pods that are new to the node.
	HandlePodAdditions(pods []*core.Pod)
	// HandlePodUpdates handles changes of the desired state, including deletions.
	HandlePodUpdates(pods []*core.Pod)
	// HandlePodRemoves handles pods that their source no longer has.
	HandlePodRemoves(pods []*core.Pod)
	// HandlePodReconcile handles pods of which only the status has changed in the
	// API.
	HandlePodReconcile(pods []*core.Pod)
	// HandlePodSyncs looks at the pods again; it ignores unknown ones.
	HandlePodSyncs(uids ...types.UID)
	// HandleDue looks at the pods whose time has come.
	HandleDue()
	// HandlePodCleanups cleans up what is left of pods that are gone.
	HandlePodCleanups(ctx context.Context)
}

// Options are the loop's inputs.
type Options struct {
	Updates   <-chan core.PodUpdate
	Lifecycle <-chan pleg.Event
	// Probes has the UIDs of pods with new probe results.
	Probes  <-chan types.UID
	Handler Handler
	// Heard is called for each source whose update was handled.
	Heard func(source string)
	// RuntimeError says why the runtime can't be used now, or nil.
	RuntimeError func() error
	Clock        clock.WithTicker
	Logger       *zap.Logger
}

const (
	syncPeriod         = time.Second
	housekeepingPeriod = 2 * time.Second
	// stalledAfter is how long one round may take before the loop counts as stuck.
	stalledAfter = 2 * time.Minute
)

var pause = backoff.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second}

// Loop routes until its context ends.
type Loop struct {
	Options
	round atomic.Pointer[time.Time] // start of the current round, by a monotonic clock
	wake  chan struct{}
}

// New returns a Loop that does nothing before Run.
func New(o Options) *Loop {
	l := &Loop{Options: o, wake: make(chan struct{}, 1)}
	l.alive()
	return l
}

func (l *Loop) alive() {
	now := l.Clock.Now()
	l.round.Store(&now)
}

// Healthy returns an error if the loop is stuck in a handler.
func (l *Loop) Healthy() error {
	if age := l.Clock.Since(*l.round.Load()); age > stalledAfter {
		return fmt.Errorf("sync loop has been in one round for %v; threshold is %v", age.Round(time.Second), stalledAfter)
	}
	return nil
}

// Run routes until ctx ends. While the runtime can't be used it holds
// everything back, checking again after longer and longer pauses.
func (l *Loop) Run(ctx context.Context) error {
	syncTicker := l.Clock.NewTicker(syncPeriod)
	defer syncTicker.Stop()
	housekeeping := l.Clock.NewTicker(housekeepingPeriod)
	defer housekeeping.Stop()
	failures := 0
	for ctx.Err() == nil {
		l.alive()
		if err := l.RuntimeError(); err != nil {
			failures++
			if failures == 1 {
				l.Logger.Warn("skipping pod synchronization", zap.Error(err))
			}
			l.wait(ctx, pause.Delay(failures))
			continue
		}
		if failures > 0 {
			l.Logger.Info("resuming pod synchronization")
			failures = 0
		}
		l.step(ctx, syncTicker.C(), housekeeping.C())
	}
	return ctx.Err()
}

// Wake makes a loop that waits for the runtime check it again now.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Loop) wait(ctx context.Context, d time.Duration) {
	timer := l.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-l.wake:
	}
}

// step handles one thing.
func (l *Loop) step(ctx context.Context, syncTick, housekeepingTick <-chan time.Time) {
	select {
	case <-ctx.Done():
	case update := <-l.Updates:
		l.alive()
		l.handle(update)
	case event := <-l.Lifecycle:
		l.alive()
		if event.Type != pleg.ContainerRemoved {
			l.Handler.HandlePodSyncs(event.UID)
		}
	case uid := <-l.Probes:
		l.alive()
		l.Handler.HandlePodSyncs(uid)
	case <-syncTick:
		l.alive()
		l.Handler.HandleDue()
	case <-housekeepingTick:
		l.alive()
		l.Handler.HandlePodCleanups(ctx)
	}
}

// first are the names of as many pods as fit a line of the log.
func first(pods []*core.Pod) []string {
	names := make([]string, min(len(pods), 20))
	for i := range names {
		names[i] = pods[i].Namespace + "/" + pods[i].Name
	}
	return names
}

func (l *Loop) handle(update core.PodUpdate) {
	if line := l.Logger.Check(zap.DebugLevel, "pods of a source changed"); line != nil {
		line.Write(zap.Stringer("op", update.Op), zap.String("source", update.Source), zap.Int("count", len(update.Pods)),
			zap.Strings("pods", first(update.Pods)))
	}
	switch update.Op {
	case core.ADD:
		l.Handler.HandlePodAdditions(update.Pods)
	case core.UPDATE, core.DELETE:
		// Deletion is graceful: the pod exists until it has ended.
		l.Handler.HandlePodUpdates(update.Pods)
	case core.REMOVE:
		l.Handler.HandlePodRemoves(update.Pods)
	case core.RECONCILE:
		l.Handler.HandlePodReconcile(update.Pods)
	default:
		l.Logger.Error("update with an operation that sync loops do not take", zap.Stringer("op", update.Op), zap.String("source", update.Source))
	}
	l.Heard(update.Source)
}
