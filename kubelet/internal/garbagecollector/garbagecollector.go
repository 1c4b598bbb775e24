package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/keylock"
	"kctl/kubelet/internal/loglinks"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/daemon"
)

// interval is upstream's between two rounds.
const interval = time.Minute

// State lists what pods have in the container runtime.
type State interface {
	Pods(ctx context.Context) ([]*runtimestate.RunningPod, error)
	// Pod is nil if the runtime has nothing of the pod.
	Pod(ctx context.Context, uid types.UID) (*runtimestate.RunningPod, error)
}

// Runtime removes just those parts of a pod that are in its argument.
type Runtime interface {
	RemovePod(ctx context.Context, what *runtimestate.RunningPod) error
}

// Directories are the pods' own, with their volumes.
type Directories interface {
	Pods() ([]types.UID, error)
	RemovePodDir(ctx context.Context, uid types.UID) error
}

// Cgroups are the pods' control groups.
type Cgroups interface {
	Pods() (map[types.UID]corev1.PodQOSClass, error)
	Destroy(uid types.UID, class corev1.PodQOSClass) error
}

// Options are what a Collector works on. All but Failed are needed.
type Options struct {
	State       State
	Runtime     Runtime
	Directories Directories
	Cgroups     Cgroups
	PodLogsDir  string
	// Known tells whether to keep what is left of a pod: its source or a worker
	// has it. Pods that ended but are still in the API are known, for their logs.
	Known func(uid types.UID) bool
	// Evicted tells whether a known pod was ended because of what it used, which
	// would not be freed otherwise: nothing of its containers is kept.
	Evicted func(uid types.UID) bool
	// Ended tells whether no container of a pod will run again.
	Ended func(uid types.UID) bool
	// Ready tells whether every source has been heard, so that Known can be
	// trusted.
	Ready func() bool
	// Failed tells people that containers can't be removed, if it is not nil.
	Failed func(reason, message string)
	Clock  clock.WithTicker
	Logger *zap.Logger
}

// Collector collects one node's garbage. Run owns its goroutine.
type Collector struct {
	Options
	now   chan struct{}
	round chan struct{}            // holds one token while somebody goes round: there is one round at a time
	pods  keylock.Locks[types.UID] // if two removed the same pod at the same time, one of them would fail
}

// New returns a Collector that does nothing before Run.
func New(o Options) *Collector {
	return &Collector{Options: o, now: make(chan struct{}, 1), round: make(chan struct{}, 1)}
}

// Run goes round until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	ticker := c.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-c.now:
		}
		if err := c.Collect(ctx); err != nil && ctx.Err() == nil {
			c.Logger.Warn("not everything that pods left behind could be removed", zap.Error(err))
		}
	}
}

// CollectSoon makes Run go round without waiting for its time.
func (c *Collector) CollectSoon() {
	select {
	case c.now <- struct{}{}:
	default: // it is going to
	}
}

// Collect goes round once. What fails is tried again the next time, and holds
// up nothing else.
func (c *Collector) Collect(ctx context.Context) error { return c.goRound(ctx, c.Evicted) }

// Reclaim goes round once like Collect, and keeps nothing of the containers of
// pods that have ended: the node needs the space more than people need their logs.
func (c *Collector) Reclaim(ctx context.Context) error { return c.goRound(ctx, c.Ended) }

// CollectPod removes the containers of one pod that was evicted, and their logs,
// without waiting for what else there is to remove on the node.
func (c *Collector) CollectPod(ctx context.Context, uid types.UID) error {
	if !c.Ready() || !c.Evicted(uid) {
		return nil
	}
	pod, err := c.State.Pod(ctx, uid)
	if err != nil {
		return fmt.Errorf("listing what is left of an evicted pod: %w", err)
	}
	var failed []error
	if pod != nil {
		left, err := c.removePod(ctx, pod, c.Evicted)
		if left {
			return err // something of it runs, and may write to its logs
		}
		failed = append(failed, err)
	}
	return errors.Join(append(failed, c.removePodLogs(func(of types.UID) bool { return of == uid }), loglinks.RemoveAll(c.PodLogsDir))...)
}

// goRound keeps nothing of the containers of known pods that are spent.
func (c *Collector) goRound(ctx context.Context, spent func(types.UID) bool) error {
	select {
	case c.round <- struct{}{}:
		defer func() { <-c.round }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for the garbage collection under way: %w", ctx.Err())
	}
	if !c.Ready() {
		return nil
	}
	// Known is asked after the listing: a pod that comes in between is kept.
	pods, err := c.State.Pods(ctx)
	if err != nil {
		err = fmt.Errorf("listing pods to collect: %w", err)
		c.report(ctx, err)
		return err
	}
	inRuntime, ended := map[types.UID]bool{}, map[types.UID]bool{}
	var failed []error
	for _, pod := range pods {
		left, err := c.removePod(ctx, pod, spent)
		if err != nil {
			failed = append(failed, err)
		}
		inRuntime[pod.UID] = left || err != nil
		ended[pod.UID] = !left
	}
	c.report(ctx, errors.Join(failed...))
	gone := func(uid types.UID) bool { return !inRuntime[uid] && !c.Known(uid) }
	// If something that has ended can't be removed, its logs can: nobody writes them any
	// more.
	silent := func(uid types.UID) bool { return (!inRuntime[uid] || ended[uid]) && (!c.Known(uid) || c.Evicted(uid)) }
	return errors.Join(append(failed, c.removePodLogs(silent), loglinks.RemoveAll(c.PodLogsDir), c.removeCgroups(gone),
		c.removeDirectories(ctx, gone))...)
}

func (c *Collector) report(ctx context.Context, err error) {
	if err != nil && c.Failed != nil && ctx.Err() == nil {
		c.Failed("ContainerGCFailed", err.Error())
	}
}

// removePod removes what can be removed of one pod, and tells whether anything stays.
func (c *Collector) removePod(ctx context.Context, pod *runtimestate.RunningPod, spent func(types.UID) bool) (left bool, err error) {
	known := c.Known(pod.UID)
	what := selectGarbage(pod, known && !spent(pod.UID))
	left = len(what.Containers) < len(pod.Containers) || len(what.Sandboxes) < len(pod.Sandboxes)
	unlock, err := c.pods.Lock(ctx, pod.UID)
	if err != nil {
		return left, fmt.Errorf("waiting for pod %s/%s to be removed: %w", pod.Namespace, pod.Name, err)
	}
	defer unlock()
	if len(what.Containers)+len(what.Sandboxes) > 0 {
		if err := c.Runtime.RemovePod(ctx, what); err != nil {
			return left, err
		}
		c.Logger.Debug("removed what ended of a pod", daemon.PodKey(pod.Namespace, pod.Name, pod.UID),
			zap.Int("containers", len(what.Containers)), zap.Int("sandboxes", len(what.Sandboxes)))
	}
	if known {
		for _, container := range what.Containers {
			if err := c.removeContainerLogs(pod, container); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}

// selectGarbage selects what can be removed of a pod. Lists are newest first. For each
// container of a known pod, the newest instance stays, whatever its state, and one dead
// instance before it, whose end is shown as the last state; also for a container that
// waits to be restarted, in case its pod ends.
func selectGarbage(pod *runtimestate.RunningPod, known bool) *runtimestate.RunningPod {
	what := &runtimestate.RunningPod{UID: pod.UID, Name: pod.Name, Namespace: pod.Namespace}
	newer, used := map[string]bool{}, map[string]bool{}
	deadKept := map[string]bool{}
	for _, container := range pod.Containers {
		dead := container.State == runtimestate.StateExited ||
			// Created is on its way to run, unless its pod or a newer one says otherwise.
			container.State == runtimestate.StateCreated && (!known || newer[container.Name])
		keep := !dead || known && !deadKept[container.Name]
		if dead && keep && newer[container.Name] {
			deadKept[container.Name] = true
		}
		newer[container.Name] = true
		if keep {
			used[container.SandboxID] = true
			continue
		}
		what.Containers = append(what.Containers, container)
	}
	for i, sandbox := range pod.Sandboxes {
		if sandbox.State == runtimestate.StateRunning || known && i == 0 || used[sandbox.ID.ID] {
			continue
		}
		what.Sandboxes = append(what.Sandboxes, sandbox)
	}
	return what
}

// removeContainerLogs removes the logs of one instance of a container, also those
// that were rotated away.
func (c *Collector) removeContainerLogs(pod *runtimestate.RunningPod, container *runtimestate.RunningContainer) error {
	log := filepath.Join(podfiles.LogDirectory(c.PodLogsDir, pod.Namespace, pod.Name, pod.UID),
		podfiles.LogPath(container.Name, container.Attempt))
	dir, name := filepath.Split(log)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing logs of container %s: %w", container.Name, err)
	}
	for _, e := range entries {
		if e.Name() != name && !strings.HasPrefix(e.Name(), name+".") {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing logs of container %s: %w", container.Name, err)
		}
	}
	return nil
}

// removePodLogs removes the log directories of pods that are gone.
func (c *Collector) removePodLogs(gone func(types.UID) bool) error {
	entries, err := os.ReadDir(c.PodLogsDir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("looking for logs to collect: %w", err)
	}
	var failed []error
	for _, e := range entries {
		parts := strings.SplitN(e.Name(), "_", 3) // namespace, name, uid
		if len(parts) != 3 || !e.IsDir() || !gone(types.UID(parts[2])) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.PodLogsDir, e.Name())); err != nil {
			failed = append(failed, fmt.Errorf("removing logs of a deleted pod: %w", err))
		}
	}
	return errors.Join(failed...)
}

// removeCgroups destroys the control groups of pods that are gone.
func (c *Collector) removeCgroups(gone func(types.UID) bool) error {
	pods, err := c.Cgroups.Pods()
	if err != nil {
		return err
	}
	var failed []error
	for uid, class := range pods {
		if gone(uid) {
			failed = append(failed, c.Cgroups.Destroy(uid, class))
		}
	}
	return errors.Join(failed...)
}

// removeDirectories removes the directories of pods that are gone.
func (c *Collector) removeDirectories(ctx context.Context, gone func(types.UID) bool) error {
	pods, err := c.Directories.Pods()
	if err != nil {
		return err
	}
	var failed []error
	for _, uid := range pods {
		if gone(uid) {
			failed = append(failed, c.Directories.RemovePodDir(ctx, uid))
		}
	}
	return errors.Join(failed...)
}
