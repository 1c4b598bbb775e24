package podruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// SyncPod brings a pod from status towards its spec, as far as possible without
// waiting for a container to end, a probe to pass or a back-off to run out. It
// acts on the results of its own calls at once: if one step makes the next
// possible, it takes that too.
//
// When ctx ends, it starts nothing more and returns after the current runtime
// call: otherwise a half-made sandbox would be left behind.
func (m *Manager) SyncPod(ctx context.Context, pod *core.Pod, status *runtimestate.PodStatus, o SyncOptions) SyncResult {
	s := &podSync{
		Manager: m, ctx: ctx, pod: pod, options: o, status: status, pace: newPace(), mounting: make(pace, 1),
		images: map[string]*future[image.Present]{}, volumes: map[string]*future[image.Present]{}, waiting: map[string]runtimestate.Waiting{},
	}
	var cancel context.CancelFunc
	s.beside, cancel = context.WithCancel(ctx)
	for s.step() {
	}
	cancel() // what is still under way is for containers that do not start now
	s.background.Wait()
	return SyncResult{Status: s.status, Waiting: s.waiting, RetryAfter: s.retryAfter, Err: errors.Join(s.failures...)}
}

// podSync is one SyncPod in progress.
type podSync struct {
	*Manager
	ctx     context.Context
	pod     *core.Pod
	options SyncOptions

	pace       pace            // of containers' creation and start
	mounting   pace            // of the creation of those with image volumes
	background sync.WaitGroup  // pulls, preparation, sandbox status
	beside     context.Context // of pulls and preparation

	// Set by one step before it starts anything that reads them.
	sandboxID string
	config    *runtimeapi.PodSandboxConfig
	handler   string
	ips       *future[[]string]
	prepared  *future[struct{}]
	images    map[string]*future[image.Present] // by container
	volumes   map[string]*future[image.Present] // by volume

	files sync.Mutex // held while the pod's hosts file is written

	mu         sync.Mutex // guards what follows, and the order of Changed calls
	status     *runtimestate.PodStatus
	untold     bool // the status changed since Changed was called
	waiting    map[string]runtimestate.Waiting
	retryAfter time.Duration
	failures   []error
}

// step does what package podactions says, once, and tells whether it is worth
// asking again.
func (s *podSync) step() (again bool) {
	actions := podactions.Compute(s.pod, s.status, s.facts())
	// Nothing is done twice to the same container in one SyncPod.
	actions.Start = slices.DeleteFunc(actions.Start, func(c podactions.Start) bool { return s.tried(c.Name) })
	actions.Kill = slices.DeleteFunc(actions.Kill, func(k podactions.Kill) bool { return s.tried(k.Name) })
	s.applyBackOff(actions.Start)
	if actions.Idle() {
		return false
	}
	if err := s.ctx.Err(); err != nil {
		s.fail(err)
		return false
	}
	if actions.CreateSandbox && s.sandboxID != "" {
		s.fail(fmt.Errorf("sandbox %s of pod %s/%s is not usable: another one is made later", s.sandboxID, s.pod.Namespace, s.pod.Name))
		return false
	}
	if actions.RestartAll != nil {
		return s.restartAll(actions)
	}
	if actions.KillPod {
		if !s.endPod(actions) || !actions.CreateSandbox {
			return false
		}
	} else if !s.endContainers(actions) {
		return false
	}
	if !s.resizeContainers(actions.Resize) {
		return false
	}
	if !actions.CreateSandbox && len(due(actions.Start)) == 0 {
		return false
	}
	if !s.sandbox(actions) {
		return false
	}
	return s.startAll(actions.Start)
}

func (s *podSync) tried(container string) bool {
	_, tried := s.waiting[container]
	return tried
}

func (s *podSync) facts() podactions.Facts {
	f := podactions.Facts{
		Now:    s.Clock.Now(),
		Probes: map[runtimestate.ContainerID]podactions.ProbeResults{},
		Delays: map[string]time.Duration{},
		Ended:  map[string]time.Time{},
		Actual: map[string]corev1.ResourceRequirements{},
	}
	for _, c := range s.status.Containers {
		if s.options.Probes != nil && c.State == runtimestate.StateRunning {
			f.Probes[c.ID] = s.options.Probes(c.ID)
		}
	}
	for c := range core.Containers(&s.pod.Spec) {
		key := s.key(c)
		last := s.status.Container(c.Name)
		if last.Ran() > 2*s.MaxContainerBackOff {
			s.crashes.Reset(key) // it ran well for long
		}
		f.Delays[c.Name] = s.crashes.Delay(key)
		if last != nil && last.State == runtimestate.StateExited {
			f.Ended[c.Name] = s.ends.of(key, last, f.Now)
		}
		if s.options.Resources != nil {
			if actual, known := s.options.Resources.Actual(c.Name); known {
				f.Actual[c.Name] = actual
			}
		}
	}
	return f
}

// endPod ends everything of the pod. Before a new sandbox, init containers are
// forgotten too, because the pod starts from its beginning.
func (s *podSync) endPod(a podactions.Actions) bool {
	if err := s.KillPod(s.ctx, s.pod, s.status.RunningPod(s.state.Name()), nil); err != nil {
		s.fail(err)
		return false
	}
	ended, err := s.state.PodStatus(s.ctx, s.pod.UID, s.pod.Name, s.pod.Namespace)
	if err != nil {
		s.fail(err)
		return false
	}
	s.markRestarts(ended.Containers, a)
	s.publish(func(status *runtimestate.PodStatus) {
		status.Sandboxes, status.Containers = ended.Sandboxes, slices.Clone(ended.Containers)
	})
	if s.doneBeforeNewSandbox(a) {
		return false
	}
	if a.CreateSandbox { // only now, or nobody would know how those that ran have ended
		s.tellNewSandbox(ended)
		if len(ended.Sandboxes) > 0 {
			s.Events.Eventf(s.pod, corev1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
		}
		kept := slices.DeleteFunc(ended.Containers, func(c *runtimestate.ContainerStatus) bool {
			return s.isInit(c.Name) && s.runtime.RemoveContainer(context.WithoutCancel(s.ctx), c.ID.ID) == nil
		})
		s.publish(func(status *runtimestate.PodStatus) { status.Containers = kept })
	}
	return true
}

// doneBeforeNewSandbox tells whether the pod needs no new sandbox after all: with init containers, it
// is only known now whether what ran shall run again. If not, they would run for nothing, in a pod that
// is said to have succeeded.
func (s *podSync) doneBeforeNewSandbox(a podactions.Actions) bool {
	return a.CreateSandbox && len(s.pod.Spec.InitContainers) > 0 && !podactions.Compute(s.pod, s.status, s.facts()).CreateSandbox
}

// markRestarts marks those of the containers that have been ended just now only to be started again,
// as are all init containers in a new sandbox.
func (s *podSync) markRestarts(ended []*runtimestate.ContainerStatus, a podactions.Actions) {
	again := func(name string) bool {
		return slices.ContainsFunc(a.Start, func(start podactions.Start) bool { return start.Name == name }) || a.CreateSandbox && s.isInit(name)
	}
	for i, c := range ended {
		before := s.status.ContainerByID(c.ID)
		if before != nil && before.State == runtimestate.StateRunning && again(c.Name) {
			ended[i] = startedAgain(c)
		}
	}
}

// startedAgain is the status of a container that was ended and is to be started again: by its exit
// code alone, a job that was interrupted would be one that is done.
func startedAgain(ended *runtimestate.ContainerStatus) *runtimestate.ContainerStatus {
	marked := *ended
	marked.Again = true
	return &marked
}

func (s *podSync) isInit(name string) bool {
	return slices.ContainsFunc(s.pod.Spec.InitContainers, func(c core.Container) bool { return c.Name == name })
}

// endContainers ends single containers in parallel, and reads how they ended.
func (s *podSync) endContainers(a podactions.Actions) bool {
	var g errgroup.Group
	restarts, together := due(a.Start), ending{pace: newPace()}
	for _, kill := range a.Kill {
		g.Go(func() error {
			if err := s.killContainer(s.ctx, s.pod, kill, together, nil); err != nil {
				s.wait(kill.Name, runtimestate.ReasonKillContainer, err.Error(), 0)
				return err
			}
			ended := s.look(kill.ID.ID)
			if ended != nil {
				s.tellEnded(kill, ended, a.Start)
			}
			switch {
			case ended == nil:
			case slices.ContainsFunc(restarts, func(c podactions.Start) bool { return c.Name == kill.Name }):
				s.record(with(startedAgain(ended)), false)
				s.publishLater()
			default:
				s.publish(with(ended))
			}
			return nil
		})
	}
	for _, id := range a.Remove {
		g.Go(func() error { return s.removeUnstarted(id) })
	}
	if err := g.Wait(); err != nil {
		s.fail(err)
		return false
	}
	return true
}

// removeUnstarted removes a container whose kubelet ended between creating and
// starting it. The status may be older than its start, so the runtime is asked
// again.
func (s *podSync) removeUnstarted(id runtimestate.ContainerID) error {
	now, err := s.state.Container(s.ctx, id.ID, "")
	if err != nil {
		return err
	}
	if now != nil && now.State != runtimestate.StateCreated {
		return fmt.Errorf("container %s was started meanwhile", id)
	}
	if now != nil {
		if err := s.runtime.RemoveContainer(context.WithoutCancel(s.ctx), id.ID); err != nil {
			return err
		}
	}
	s.publish(without(id))
	return nil
}

// startAll starts ephemeral containers, then init containers one after the other, then
// containers: in parallel up to one with a postStart hook, and the others when that is over. Upstream's
// kubelet starts one after the other, and so the hook of a proxy that comes first keeps a pod's program
// back until the proxy is ready, or the hook has failed. It tells whether anything was started.
func (s *podSync) startAll(starts []podactions.Start) (anything bool) {
	if _, err := s.prepared.wait(); err != nil {
		s.fail(err)
		return false
	}
	var beside []podactions.Start
	for _, c := range due(starts) {
		if c.Kind == podactions.Regular {
			beside = append(beside, c)
			continue
		}
		started := s.startContainer(c)
		anything = anything || started
		if spec, _ := s.spec(c); !started && c.Kind == podactions.Init && !core.IsSidecar(spec) {
			return anything // what follows needs it; a sidecar that is followed by anything is one that ran before
		}
	}
	for len(beside) > 0 {
		together := beside[:s.untilHook(beside)]
		beside = beside[len(together):]
		results := make([]bool, len(together))
		var g sync.WaitGroup
		for i, c := range together {
			g.Go(func() { results[i] = s.startContainer(c) })
		}
		g.Wait()
		anything = anything || slices.Contains(results, true)
	}
	return anything
}

// untilHook is how many containers there are up to the first one with a postStart hook.
func (s *podSync) untilHook(starts []podactions.Start) int {
	first := slices.IndexFunc(starts, func(c podactions.Start) bool {
		spec, _ := s.spec(c)
		return spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil
	})
	if first < 0 {
		return len(starts)
	}
	return first + 1
}

// spec is the container that c is about, and where it is in the pod.
func (s *podSync) spec(c podactions.Start) (*core.Container, string) {
	switch c.Kind {
	case podactions.Init:
		return &s.pod.Spec.InitContainers[c.Index], fmt.Sprintf("spec.initContainers{%s}", c.Name)
	case podactions.Ephemeral:
		e := core.Container(s.pod.Spec.EphemeralContainers[c.Index].EphemeralContainerCommon)
		return &e, fmt.Sprintf("spec.ephemeralContainers{%s}", c.Name)
	}
	return &s.pod.Spec.Containers[c.Index], fmt.Sprintf("spec.containers{%s}", c.Name)
}

// describe formats a pod as upstream does in messages.
func describe(pod *core.Pod) string {
	return fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
}
