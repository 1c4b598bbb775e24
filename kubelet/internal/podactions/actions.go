package podactions

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// Facts are what Compute looks at besides the pod and its status.
type Facts struct {
	Now time.Time
	// Probes are the last results for running containers.
	Probes map[runtimestate.ContainerID]ProbeResults
	// Delays are the crash back-off of the pod's containers by name, counted
	// from when they ended last.
	Delays map[string]time.Duration
	// Ended is when containers ended last, by name, on the clock that Now is
	// of; the runtime's own record counts for the others.
	Ended map[string]time.Time
	// Actual is what containers run with, by name, as far as it is known.
	Actual map[string]corev1.ResourceRequirements
}

// Actions say how to get from a pod's status one step nearer to its spec.
// They are to be done in the order of the fields.
type Actions struct {
	// KillPod ends all containers and sandboxes.
	KillPod bool
	// RestartAll is the container whose end makes the pod start over: Kill is then
	// without grace, and Remove forgets what ended.
	RestartAll *runtimestate.ContainerStatus
	// Kill ends containers that shall not run as they are.
	Kill []Kill
	// Resize changes running containers' resources in place.
	Resize []Resize
	// Remove removes containers that were created and never started, or that are
	// to be forgotten.
	Remove []runtimestate.ContainerID
	// CreateSandbox makes a sandbox with Attempt; otherwise SandboxID is used.
	CreateSandbox bool
	Attempt       uint32
	SandboxID     string
	// Start has ephemeral containers, then init containers in order, then
	// containers.
	Start []Start
}

// Idle tells that there is nothing to do, or nothing before some back-off ends.
func (a Actions) Idle() bool {
	if a.KillPod || a.CreateSandbox || len(a.Kill) > 0 || len(a.Remove) > 0 || len(a.Resize) > 0 {
		return false
	}
	for _, s := range a.Start {
		if s.BackOff == 0 {
			return false
		}
	}
	return true
}

// Kill ends a container.
type Kill struct {
	ID      runtimestate.ContainerID
	Name    string
	Message string
	// Cause is what is told of it; a failed probe's may decide how long the container has.
	Cause relay.Cause
}

// Resize gives a running container the resources of its spec.
type Resize struct {
	ID        runtimestate.ContainerID
	Container *core.Container
}

// Kind is in which list of its pod a container is.
type Kind string

const (
	Regular   Kind = "container"
	Init      Kind = "init container"
	Ephemeral Kind = "ephemeral container"
)

// Start starts the container at Index of the pod's containers of its Kind.
type Start struct {
	Kind  Kind
	Index int
	Name  string
	// BackOff is what is left of the container's crash back-off.
	BackOff time.Duration
}

// Compute decides what to do for a pod that shall run. It is a pure
// function.
func Compute(pod *core.Pod, status *runtimestate.PodStatus, f Facts) Actions {
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

// decision gathers Actions.
type decision struct {
	pod     *core.Pod
	status  *runtimestate.PodStatus
	facts   Facts
	actions Actions
}

// sandboxChanged tells whether the pod needs a new sandbox, and the number of
// that attempt.
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
	case ready > 1, // two networks: it is unknown which one is the pod's
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
	var start []Start
	for i := range d.pod.Spec.Containers {
		c := &d.pod.Spec.Containers[i]
		if startsInNewSandbox(d.pod, c, d.status.Container(c.Name)) {
			start = append(start, d.start(Regular, i, c.Name))
		}
	}
	if d.actions.Attempt != 0 && slices.ContainsFunc(d.status.Containers, ran) && !anyRestarts(d.pod, d.status) {
		return // the pod ran, and shall not run again
	}
	if len(start) == 0 && everInitialized(&d.pod.Spec, d.status) {
		return // all of it is done
	}
	d.actions.CreateSandbox = true
	if len(d.pod.Spec.InitContainers) > 0 {
		d.addStart(Init, 0, d.pod.Spec.InitContainers[0].Name)
		return
	}
	d.actions.Start = start
}

// ephemeral starts ephemeral containers that never ran; they run once.
func (d *decision) ephemeral() {
	for i := range d.pod.Spec.EphemeralContainers {
		if name := d.pod.Spec.EphemeralContainers[i].Name; d.status.Container(name) == nil {
			d.addStart(Ephemeral, i, name)
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
				d.addStart(Regular, i, c.Name)
				started++
			}
			continue
		}
		kill, changed := d.unfit(c, last)
		if kill == nil {
			d.resize(c, last)
			kept++
			continue
		}
		switch {
		case d.pod.DeletionTimestamp != nil:
		case changed, core.RestartPolicyOf(&d.pod.Spec, c) != corev1.ContainerRestartPolicyNever:
			if !d.resizeRestarts(c) { // which says so already
				kill.Message += ", will be restarted"
			}
			d.restart(Regular, i, c.Name, changed)
			started++
		case len(c.RestartPolicyRules) > 0:
			kept++ // how it ends decides whether it is started again
		}
		d.actions.Kill = append(d.actions.Kill, *kill)
	}
	if kept == 0 && started == 0 {
		// All is done. What sidecars still run ends with the pod.
		d.actions = Actions{KillPod: true, SandboxID: d.actions.SandboxID}
	}
}

// unfit says why a running container cannot go on; if its spec has changed, it is
// restarted regardless of its restart policy.
func (d *decision) unfit(c *core.Container, s *runtimestate.ContainerStatus) (kill *Kill, changed bool) {
	probes := d.facts.Probes[s.ID]
	who := "Container " + c.Name
	if core.IsSidecar(c) {
		who = "Init container " + c.Name
	}
	switch {
	case s.Hash != runtimestate.HashContainer(c):
		return &Kill{ID: s.ID, Name: c.Name, Message: who + " definition changed", Cause: relay.CauseDefinition}, true
	case d.resizeRestarts(c):
		return &Kill{ID: s.ID, Name: c.Name, Message: who + " resize requires restart", Cause: relay.CauseResize}, true
	case c.LivenessProbe != nil && probes.Liveness == ProbeFailure:
		return &Kill{
			ID:      s.ID,
			Name:    c.Name,
			Cause:   relay.CauseLiveness,
			Message: who + " failed liveness probe",
		}, false
	case c.StartupProbe != nil && probes.Startup == ProbeFailure:
		return &Kill{
			ID:      s.ID,
			Name:    c.Name,
			Cause:   relay.CauseStartup,
			Message: who + " failed startup probe",
		}, false
	}
	return nil, false
}

// clear makes way for a restart of a container whose last instance is not known
// to have ended.
func (d *decision) clear(last *runtimestate.ContainerStatus) {
	if last == nil {
		return
	}
	switch last.State {
	case runtimestate.StateUnknown:
		d.actions.Kill = append(d.actions.Kill, Kill{
			ID:      last.ID,
			Name:    last.Name,
			Message: fmt.Sprintf("Container is in %q state, try killing it before restart", last.State),
		})
	case runtimestate.StateCreated:
		d.actions.Remove = append(d.actions.Remove, last.ID)
	}
}

func (d *decision) addStart(kind Kind, index int, name string) {
	d.actions.Start = append(d.actions.Start, d.start(kind, index, name))
}

func (d *decision) start(kind Kind, index int, name string) Start {
	s := Start{Kind: kind, Index: index, Name: name}
	if last := d.status.Container(name); last != nil && last.State == runtimestate.StateExited {
		ended, known := d.facts.Ended[name]
		if !known {
			ended = last.FinishedAt
		}
		s.BackOff = max(0, ended.Add(d.facts.Delays[name]).Sub(d.facts.Now))
	}
	return s
}

// restart restarts a container that must be killed first: at once if its spec has
// changed, also to what it was before. Otherwise its back-off goes by the end of the
// run before, as with upstream's kubelet: held back, one that ends well may be done.
func (d *decision) restart(kind Kind, index int, name string, changed bool) {
	s := Start{Kind: kind, Index: index, Name: name}
	before := slices.IndexFunc(d.status.Containers, func(c *runtimestate.ContainerStatus) bool {
		return c.Name == name && c.State == runtimestate.StateExited
	})
	if !changed && before >= 0 {
		delay := d.facts.Delays[name]
		left := d.status.Containers[before].FinishedAt.Add(delay).Sub(d.facts.Now)
		s.BackOff = min(max(0, left), delay) // whatever the machine's clock was
	}
	d.actions.Start = append(d.actions.Start, s)
}

// everInitialized tells whether a regular container was ever made, so that all
// init containers must have ended well once; their own records may be gone.
func everInitialized(spec *core.PodSpec, status *runtimestate.PodStatus) bool {
	return anyMade(spec, status, func(*runtimestate.ContainerStatus) bool { return true })
}

// Initialized tells whether a regular container was made in the newest sandbox: in
// a new one, as after a reboot, all init containers run again first.
func Initialized(spec *core.PodSpec, status *runtimestate.PodStatus) bool {
	return anyMade(spec, status, func(c *runtimestate.ContainerStatus) bool {
		return len(status.Sandboxes) > 0 && c.SandboxID == status.Sandboxes[0].ID
	})
}

func anyMade(spec *core.PodSpec, status *runtimestate.PodStatus, counts func(*runtimestate.ContainerStatus) bool) bool {
	return slices.ContainsFunc(spec.Containers, func(c core.Container) bool {
		last := status.Container(c.Name)
		return last != nil && last.State != runtimestate.StateUnknown && counts(last)
	})
}
