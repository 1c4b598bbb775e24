package podruntime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
)

// minimumGrace is the time that a container always gets between SIGTERM and SIGKILL, however
// short its grace period is or whatever used that up.
const minimumGrace = 2 * time.Second

// KillPod ends a pod's containers in parallel, sidecars after the others, and
// then its sandboxes; it returns when all have ended. The grace period is the
// override if there is one, and otherwise the pod's. Pod may be nil for pods
// that only the runtime knows. When ctx ends, KillPod returns, and may be
// called again with a shorter grace period: what has ended stays ended.
func (m *Manager) KillPod(ctx context.Context, pod *core.Pod, running *runtimestate.RunningPod, grace *int64) error {
	if err := m.killContainers(ctx, pod, running, grace); err != nil {
		// The sandbox is not stopped: it would end the containers without grace.
		return fmt.Errorf("ending pod %s/%s: %w", running.Namespace, running.Name, err)
	}
	var g errgroup.Group
	for _, s := range running.Sandboxes {
		if s.State != runtimestate.StateRunning {
			// Its network may still be allocated: stopping releases it.
			m.Logger.Debug("stopping a sandbox that is not ready", zap.String("uid", string(running.UID)), zap.String("id", s.ID.ID))
		}
		g.Go(func() error {
			if err := m.runtime.StopPodSandbox(ctx, s.ID.ID); err != nil && !cri.IsNotFound(err) {
				return fmt.Errorf("stopping the sandbox of pod %s/%s: %w", running.Namespace, running.Name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// killContainers ends the containers that may run, all within one grace period. Their
// preStop hooks run at once, including those of sidecars. After that, containers wait for
// their turn: first all but the sidecars end, then the sidecars in the reverse order of
// their start (Kubernetes docs, "Sidecar Containers"). When the grace period is over,
// nobody has a turn any more: all that are left end at once.
func (m *Manager) killContainers(ctx context.Context, pod *core.Pod, running *runtimestate.RunningPod, grace *int64) error {
	var first []*runtimestate.RunningContainer
	sidecars := map[string][]*runtimestate.RunningContainer{}
	for _, c := range running.Containers {
		switch {
		case c.State == runtimestate.StateExited:
		case pod != nil && isSidecarName(pod, c.Name):
			sidecars[c.Name] = append(sidecars[c.Name], c)
		default:
			first = append(first, c)
		}
	}
	if len(sidecars) == 0 {
		return m.killSideBySide(ctx, pod, first, nil, grace)
	}
	turns := [][]*runtimestate.RunningContainer{first}
	for _, c := range slices.Backward(pod.Spec.InitContainers) {
		turns = append(turns, sidecars[c.Name])
	}
	g, waiting := errgroup.WithContext(ctx)
	var before chan struct{}
	for _, containers := range turns {
		turn, done := before, make(chan struct{})
		g.Go(func() error {
			err := m.killSideBySide(ctx, pod, containers, m.terminationTurn(waiting, turn), grace)
			if err == nil {
				close(done)
			}
			return err
		})
		before = done
	}
	return g.Wait()
}

// awaitTurn waits until the containers before have ended, but no longer than for within; it fails if they
// can't be ended.
type awaitTurn func(within time.Duration) error

func (m *Manager) terminationTurn(ctx context.Context, before <-chan struct{}) awaitTurn {
	if before == nil {
		return nil
	}
	return func(within time.Duration) error {
		timer := m.Clock.NewTimer(within)
		defer timer.Stop()
		select {
		case <-before:
			return nil
		case <-timer.C():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isSidecarName(pod *core.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c core.Container) bool { return c.Name == name && core.IsSidecar(&c) })
}

// ending is what containers that end together share.
type ending struct {
	pace pace
	turn awaitTurn // nil if they may be stopped at once
}

func (m *Manager) killSideBySide(ctx context.Context, pod *core.Pod, containers []*runtimestate.RunningContainer, turn awaitTurn,
	grace *int64) error {
	together := ending{newPace(), turn}
	errs := make([]error, len(containers))
	var g errgroup.Group
	for i, c := range containers {
		g.Go(func() error {
			errs[i] = m.killContainer(ctx, pod, podactions.Kill{ID: c.ID, Name: c.Name}, together, grace)
			return nil
		})
	}
	_ = g.Wait() // each error is in errs
	if err := errors.Join(errs...); err != nil || turn == nil || len(containers) > 0 {
		return err
	}
	return turn(math.MaxInt64) // those that come after have theirs when those before have ended
}

// killContainer runs the container's preStop hook and ends it, all within its
// grace period. It is no error if the container has ended or is gone.
func (m *Manager) killContainer(ctx context.Context, pod *core.Pod, kill podactions.Kill, together ending, override *int64) error {
	var spec *core.Container
	if pod != nil {
		spec = core.FindContainer(pod, kill.Name)
	}
	if spec == nil {
		known, container, err := m.restoreSpecs(ctx, kill.ID)
		if cri.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ending container %s: %w", kill.Name, err)
		}
		spec = container
		if pod == nil {
			pod = known
		}
	}
	grace := gracePeriod(pod, spec, kill.Cause, override)
	message := kill.Message
	if message == "" {
		message = "Stopping container " + spec.Name
	}
	m.Events.ContainerEventf(pod, fieldPath(pod, spec.Name), corev1.EventTypeNormal, "Killing", "%s", message)
	m.Logger.Info("ending container", daemon.PodFields(pod),
		zap.String("container", spec.Name), zap.String("id", kill.ID.ID), zap.Duration("grace", grace), zap.String("why", message))
	began := m.Clock.Now()
	if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil && grace > 0 {
		end := m.preStop(ctx, pod, spec, kill.ID, grace)
		defer end()
	}
	if together.turn != nil {
		if err := together.turn(grace - m.Clock.Since(began)); err != nil {
			return fmt.Errorf("ending container %s: %w", spec.Name, err)
		}
	}
	err := together.pace.stop(ctx, m.Clock, grace-m.Clock.Since(began), func(grace time.Duration) error { return m.stop(ctx, kill.ID, grace) })
	if err != nil {
		return fmt.Errorf("ending container %s: %w", spec.Name, err)
	}
	return nil
}

// stop ends a container. A failed call is repeated once at once, unless the runtime
// is away: if a container's end closes the connection to its shim during the call,
// containerd 1.6 returns that as an error ("ttrpc: closed").
func (m *Manager) stop(ctx context.Context, id runtimestate.ContainerID, grace time.Duration) error {
	began := m.Clock.Now()
	err := m.runtime.StopContainer(ctx, id.ID, grace)
	if err != nil && !cri.IsNotFound(err) && !cri.IsUnavailable(err) && ctx.Err() == nil {
		m.Logger.Info("stopping a container again", zap.String("id", id.ID), zap.Error(err))
		err = m.runtime.StopContainer(ctx, id.ID, max(0, grace-m.Clock.Since(began)))
	}
	if cri.IsNotFound(err) {
		return nil
	}
	return err
}

// preStop runs the hook, and waits for it for at most grace. A failing hook is reported and delays
// nothing. One that is not done goes on as long as its container: what it returns ends it.
func (m *Manager) preStop(ctx context.Context, pod *core.Pod, c *core.Container, id runtimestate.ContainerID,
	grace time.Duration) (end func()) {
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- m.hooks.Run(running, pod, c, id, c.Lifecycle.PreStop) }()
	timer := m.Clock.NewTimer(grace)
	defer timer.Stop()
	var err error
	told := "PreStopHook failed" // without the error: what a hook prints is not for all who may read events
	select {
	case err = <-done:
		end = cancel
	case <-timer.C():
		err = fmt.Errorf("not done within the grace period of %v", grace)
		told += ": " + err.Error()
		end = func() {
			cancel()
			<-done // every hook ends with its context
		}
	}
	if err != nil && ctx.Err() == nil {
		m.Logger.Warn("preStop hook failed", daemon.PodFields(pod), zap.String("container", c.Name), zap.Error(err))
		m.Events.ContainerEventf(pod, fieldPath(pod, c.Name), corev1.EventTypeWarning, "FailedPreStopHook", "%s", told)
	}
	return end
}

// restoreSpecs reads from the runtime what is needed to end a container whose spec is
// no longer known.
func (m *Manager) restoreSpecs(ctx context.Context, id runtimestate.ContainerID) (*core.Pod, *core.Container, error) {
	status, err := m.runtime.ContainerStatus(ctx, id.ID)
	if err != nil {
		return nil, nil, err
	}
	pod, container := runtimestate.RestoreSpecs(status.GetLabels(), status.GetAnnotations())
	return pod, container, nil
}

// gracePeriod is how long a container has to end: by the override, the failed
// probe, the pod's deletion or its spec, in this order. A pod without any gets
// the minimum.
func gracePeriod(pod *core.Pod, c *core.Container, cause relay.Cause, override *int64) time.Duration {
	seconds := int64(minimumGrace / time.Second)
	var probe *corev1.Probe
	switch cause {
	case relay.CauseLiveness:
		probe = c.LivenessProbe
	case relay.CauseStartup:
		probe = c.StartupProbe
	}
	switch {
	case override != nil:
		seconds = *override
	case pod.DeletionGracePeriodSeconds != nil:
		seconds = *pod.DeletionGracePeriodSeconds
	case probe != nil && probe.TerminationGracePeriodSeconds != nil:
		seconds = *probe.TerminationGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return core.Seconds(max(seconds, 0))
}

// RemovePod removes an ended pod's containers and sandboxes from the runtime,
// in parallel. Anything that still runs is killed.
func (m *Manager) RemovePod(ctx context.Context, running *runtimestate.RunningPod) error {
	done, err := m.removals.begin(ctx, running.UID)
	if err != nil {
		return err
	}
	defer done()
	remove := func(all []*runtimestate.RunningContainer, call func(context.Context, string) error) error {
		var g errgroup.Group
		for _, c := range all {
			g.Go(func() error {
				if err := call(ctx, c.ID.ID); err != nil && !cri.IsNotFound(err) {
					return fmt.Errorf("removing pod %s/%s from the runtime: %w", running.Namespace, running.Name, err)
				}
				return nil
			})
		}
		return g.Wait()
	}
	return errors.Join(
		remove(running.Containers, m.runtime.RemoveContainer),
		remove(running.Sandboxes, m.runtime.RemovePodSandbox))
}

// fieldPath is where a container is in its pod, for events.
func fieldPath(pod *core.Pod, name string) string {
	kind := "containers"
	has := func(specs []core.Container) bool {
		return slices.ContainsFunc(specs, func(c core.Container) bool { return c.Name == name })
	}
	switch {
	case has(pod.Spec.InitContainers):
		kind = "initContainers"
	case !has(pod.Spec.Containers):
		kind = "ephemeralContainers"
	}
	return strings.Join([]string{"spec.", kind, "{", name, "}"}, "")
}
