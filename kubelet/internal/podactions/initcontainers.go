package podactions

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// initContainers decides about init containers, and tells whether all of them
// are done: succeeded or, for sidecars, started.
//
// The runtime's records of init containers that ended may be gone, so the last
// one that has a record says how far the pod has come. Only those of the present
// sandbox count: in a new one, as after a reboot, all init containers run again.
func (d *decision) initContainers() (initialized bool) {
	specs := d.pod.Spec.InitContainers
	if len(specs) == 0 {
		return true
	}
	if Initialized(&d.pod.Spec, d.status) {
		d.keepSidecars(len(specs))
		return true
	}
	at := len(specs) - 1
	for at >= 0 && d.here(specs[at].Name) == nil {
		at--
	}
	if at < 0 {
		d.startInit(0)
		return false
	}
	d.keepSidecars(at)
	if !d.initContainer(at) {
		return false
	}
	if at+1 < len(specs) {
		d.startInit(at + 1)
		return false
	}
	return true
}

// here is what the pod's present sandbox has of a container; nil if it has nothing.
func (d *decision) here(name string) *runtimestate.ContainerStatus {
	if last := d.status.Container(name); last != nil && last.SandboxID == d.actions.SandboxID {
		return last
	}
	return nil
}

func (d *decision) startInit(index int) {
	if d.pod.DeletionTimestamp == nil {
		d.addStart(Init, index, d.pod.Spec.InitContainers[index].Name)
	}
}

// keepSidecars restarts those of the first n init containers that are sidecars
// and do not run, or cannot go on as they are.
func (d *decision) keepSidecars(n int) {
	for i := range d.pod.Spec.InitContainers[:n] {
		if core.IsSidecar(&d.pod.Spec.InitContainers[i]) {
			d.sidecar(i)
		}
	}
}

// sidecar keeps one sidecar running, and tells whether it has started.
func (d *decision) sidecar(index int) (started bool) {
	c := &d.pod.Spec.InitContainers[index]
	last := d.here(c.Name)
	if last == nil || last.State != runtimestate.StateRunning {
		d.clear(last)
		d.startInit(index)
		return false
	}
	if kill, changed := d.unfit(c, last); kill != nil {
		if d.pod.DeletionTimestamp == nil {
			d.restart(Init, index, c.Name, changed)
		}
		d.actions.Kill = append(d.actions.Kill, *kill)
		return false
	}
	d.resize(c, last)
	return c.StartupProbe == nil || d.facts.Probes[last.ID].Startup == ProbeSuccess
}

// initContainer decides about the pod's current init container, and tells
// whether the next one may start.
func (d *decision) initContainer(index int) (through bool) {
	c := &d.pod.Spec.InitContainers[index]
	if core.IsSidecar(c) {
		return d.sidecar(index)
	}
	last := d.here(c.Name)
	switch {
	case last.State == runtimestate.StateRunning:
		d.resize(c, last)
		return false
	case last.Succeeded():
		return true
	case shouldRestart(d.pod, c, last) && !(last.State == runtimestate.StateUnknown &&
		core.RestartPolicyOf(&d.pod.Spec, c) == corev1.ContainerRestartPolicyNever):
		d.clear(last)
		d.startInit(index)
	case d.pod.DeletionTimestamp == nil:
		d.actions.KillPod = true // it failed for good, and the pod with it
		d.actions.Start = nil
	}
	return false
}
