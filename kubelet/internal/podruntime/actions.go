package podruntime

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// facts is what computePodActions looks at besides the pod and its status.
type facts struct {
	now time.Time
	// probes are the last results for running containers.
	probes map[runtimestate.ContainerID]ProbeResults
	// delays are the crash back-off of the pod's containers by name, counted
	// from when they ended last.
	delays map[string]time.Duration
	// ended is when containers ended last, by name, on the clock that now is
	// of; the runtime's own record counts for the others.
	ended map[string]time.Time
	// actual is what containers run with, by name, as far as it is known.
	actual map[string]corev1.ResourceRequirements
}

// podActions says how to get from a pod's status one step nearer to its spec.
// They are to be done in the order of the fields.
type podActions struct {
	// KillPod ends all containers and sandboxes.
	KillPod bool
	// RestartAll is the container whose end has the pod begin anew: Kill is
	// without grace then, and Remove forgets what ended.
	RestartAll *runtimestate.ContainerStatus
	// Kill ends containers that shall not run as they are.
	Kill []containerKill
	// Resize changes running containers' resources in place.
	Resize []containerResize
	// Remove takes containers away that were created and never started, or that
	// are to be forgotten.
	Remove []runtimestate.ContainerID
	// CreateSandbox makes a sandbox with Attempt; otherwise SandboxID is used.
	CreateSandbox bool
	Attempt       uint32
	SandboxID     string
	// Start has ephemeral containers, then init containers in order, then
	// containers.
	Start []containerStart
}

// idle tells that there is nothing to do, or nothing before some back-off ends.
func (a podActions) idle() bool {
	if a.KillPod || a.CreateSandbox || len(a.Kill) > 0 || len(a.Remove) > 0 || len(a.Resize) > 0 {
		return false
	}
	for _, s := range a.Start {
		if s.HeldFor == 0 {
			return false
		}
	}
	return true
}

type killReason string

const (
	killForLiveness killReason = "liveness"
	killForStartup  killReason = "startup"
	killForOther    killReason = ""
)

type containerKill struct {
	ID      runtimestate.ContainerID
	Name    string
	Message string
	Reason  killReason
}

type containerResize struct {
	ID        runtimestate.ContainerID
	Container *core.Container
}

type containerKind string

const (
	regularContainer   containerKind = "container"
	initContainer      containerKind = "init container"
	ephemeralContainer containerKind = "ephemeral container"
)

type containerStart struct {
	Kind  containerKind
	Index int
	Name  string
	// HeldFor is what is left of the container's crash back-off.
	HeldFor time.Duration
}

// computePodActions decides what to do for a pod that shall run. It is a pure
// function.
func computePodActions(pod *core.Pod, status *runtimestate.PodStatus, f facts) podActions {
	d := &decision{pod: pod, status: status, facts: f}
	if ended := RestartsAll(pod, status); ended != nil {
		d.restartAll(ended)
		return d.actions
	}
	if changed, attempt := sandboxChanged(pod, status); changed {
		d.actions.Attempt = attempt
		d.newSandbox()
		return d.actions
	}
	d.actions.SandboxID = status.Sandboxes[0].ID
	d.ephemeral()
	initialized := d.initContainers()
	if initialized && !d.actions.KillPod {
		d.containers()
	}
	return d.actions
}

// decision gathers podActions.
type decision struct {
	pod     *core.Pod
	status  *runtimestate.PodStatus
	facts   facts
	actions podActions
}

// sandboxChanged tells whether the pod needs a new sandbox, and which attempt
// at one that is.
func sandboxChanged(pod *core.Pod, status *runtimestate.PodStatus) (changed bool, attempt uint32) {
	if len(status.Sandboxes) == 0 {
		return true, 0
	}
	newest, ready := status.Sandboxes[0], 0
	attempt = newest.Attempt
	for _, s := range status.Sandboxes {
		attempt = max(attempt, s.Attempt)
		if s.Ready {
			ready++
		}
	}
	switch {
	case ready > 1, // two networks: nobody can say which is the pod's
		!newest.Ready,
		newest.HostNetwork != pod.Spec.HostNetwork,
		!newest.HostNetwork && len(newest.IPs) == 0:
		return true, attempt + 1
	}
	return false, attempt
}

// newSandbox ends whatever is left of the old ones and, if there is still
// something to run, starts the pod from its beginning.
func (d *decision) newSandbox() {
	d.actions.KillPod = len(d.status.Sandboxes) > 0 || len(d.status.Containers) > 0
	if d.pod.DeletionTimestamp != nil {
		return
	}
	var start []containerStart
	for i := range d.pod.Spec.Containers {
		c := &d.pod.Spec.Containers[i]
		if startsInNewSandbox(d.pod, c, d.status.Container(c.Name)) {
			start = append(start, d.start(regularContainer, i, c.Name))
		}
	}
	if d.actions.Attempt != 0 && len(d.status.Containers) > 0 && !anyRestarts(d.pod, d.status) {
		return // the pod ran, and shall not run again
	}
	if len(start) == 0 && EverInitialized(&d.pod.Spec, d.status) {
		return // all of it is done
	}
	d.actions.CreateSandbox = true
	if len(d.pod.Spec.InitContainers) > 0 {
		d.addStart(initContainer, 0, d.pod.Spec.InitContainers[0].Name)
		return
	}
	d.actions.Start = start
}

// ephemeral starts ephemeral containers that never ran; they run once.
func (d *decision) ephemeral() {
	for i := range d.pod.Spec.EphemeralContainers {
		if name := d.pod.Spec.EphemeralContainers[i].Name; d.status.Container(name) == nil {
			d.addStart(ephemeralContainer, i, name)
		}
	}
}

// containers decides about the regular containers of an initialized pod.
func (d *decision) containers() {
	kept, started := 0, 0
	for i := range d.pod.Spec.Containers {
		c := &d.pod.Spec.Containers[i]
		last := d.status.Container(c.Name)
		if last == nil || last.State != runtimestate.StateRunning {
			if shouldRestart(d.pod, c, last) {
				d.clear(last)
				d.addStart(regularContainer, i, c.Name)
				started++
			}
			continue
		}
		kill, again := d.unfit(c, last)
		if kill == nil {
			d.resize(c, last)
			kept++
			continue
		}
		again = again || restartPolicyOf(&d.pod.Spec, c) != corev1.ContainerRestartPolicyNever
		switch {
		case d.pod.DeletionTimestamp != nil:
		case again:
			if !d.resizeRestarts(c) { // which says so already
				kill.Message += ", will be restarted"
			}
			d.restart(regularContainer, i, c.Name)
			started++
		case len(c.RestartPolicyRules) > 0:
			kept++ // how it ends decides whether it is started again
		}
		d.actions.Kill = append(d.actions.Kill, *kill)
	}
	if kept == 0 && started == 0 {
		// All is done. What sidecars still run ends with the pod.
		d.actions = podActions{KillPod: true, SandboxID: d.actions.SandboxID}
	}
}

// unfit tells why a running container can not go on; regardless of its restart
// policy if again.
func (d *decision) unfit(c *core.Container, s *runtimestate.ContainerStatus) (kill *containerKill, again bool) {
	probes := d.facts.probes[s.ID]
	who := "Container " + c.Name
	if core.IsSidecar(c) {
		who = "Init container " + c.Name
	}
	switch {
	case s.Hash != runtimestate.HashContainer(c):
		return &containerKill{ID: s.ID, Name: c.Name, Message: who + " definition changed"}, true
	case d.resizeRestarts(c):
		return &containerKill{ID: s.ID, Name: c.Name, Message: who + " resize requires restart"}, true
	case c.LivenessProbe != nil && probes.Liveness == ProbeFailure:
		return &containerKill{
			ID: s.ID, Name: c.Name, Reason: killForLiveness,
			Message: who + " failed liveness probe",
		}, false
	case c.StartupProbe != nil && probes.Startup == ProbeFailure:
		return &containerKill{
			ID: s.ID, Name: c.Name, Reason: killForStartup,
			Message: who + " failed startup probe",
		}, false
	}
	return nil, false
}

// clear makes way for a container to be started anew where the last one is not
// known to have ended.
func (d *decision) clear(last *runtimestate.ContainerStatus) {
	if last == nil {
		return
	}
	switch last.State {
	case runtimestate.StateUnknown:
		d.actions.Kill = append(d.actions.Kill, containerKill{
			ID: last.ID, Name: last.Name,
			Message: fmt.Sprintf("Container is in %q state, try killing it before restart", last.State),
		})
	case runtimestate.StateCreated:
		d.actions.Remove = append(d.actions.Remove, last.ID)
	}
}

func (d *decision) addStart(kind containerKind, index int, name string) {
	d.actions.Start = append(d.actions.Start, d.start(kind, index, name))
}

func (d *decision) start(kind containerKind, index int, name string) containerStart {
	s := containerStart{Kind: kind, Index: index, Name: name}
	if last := d.status.Container(name); last != nil && last.State == runtimestate.StateExited {
		ended, known := d.facts.ended[name]
		if !known {
			ended = last.FinishedAt
		}
		s.HeldFor = max(0, ended.Add(d.facts.delays[name]).Sub(d.facts.now))
	}
	return s
}

// restart starts a container that is to be killed first, after the same
// back-off as if it had ended by itself.
func (d *decision) restart(kind containerKind, index int, name string) {
	d.actions.Start = append(d.actions.Start, containerStart{Kind: kind, Index: index, Name: name, HeldFor: d.facts.delays[name]})
}

// EverInitialized tells whether a regular container was ever made, so that all
// init containers must have ended well once; their own records may be gone.
func EverInitialized(spec *core.PodSpec, status *runtimestate.PodStatus) bool {
	for i := range spec.Containers {
		last := status.Container(spec.Containers[i].Name)
		if last != nil && last.State != runtimestate.StateUnknown {
			return true
		}
	}
	return false
}
