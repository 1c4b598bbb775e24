package podactions

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// RestartsAll is the container whose end, by its rules, makes the pod start
// over in its sandbox: everything that runs is ended, without grace and hooks,
// what ended is forgotten, and the init containers come first again (KEP-5532).
// It is nil if there is none.
func RestartsAll(pod *core.Pod, status *runtimestate.PodStatus) *runtimestate.ContainerStatus {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	for c := range core.Containers(&pod.Spec) {
		last := status.Container(c.Name)
		if last != nil && last.State == runtimestate.StateExited &&
			core.RestartAction(c, last.ExitCode) == corev1.ContainerRestartRuleActionRestartAllContainers {
			return last
		}
	}
	return nil
}

// restartAll decides how to end a pod that starts over. The container whose end
// is the reason is forgotten last, so that a kubelet that stops in the middle
// finds it again.
func (d *decision) restartAll(ended *runtimestate.ContainerStatus) {
	if len(d.status.Sandboxes) > 0 {
		d.actions.SandboxID = d.status.Sandboxes[0].ID
	}
	d.actions.RestartAll = ended
	for _, c := range d.status.Containers {
		if c.State == runtimestate.StateRunning || c.State == runtimestate.StateUnknown {
			d.actions.Kill = append(d.actions.Kill, Kill{
				ID:      c.ID,
				Name:    c.Name,
				Message: fmt.Sprintf("Container %s exited with code %d, all containers will be restarted", ended.Name, ended.ExitCode),
				Cause:   relay.CauseRestartAll,
			})
		}
	}
	d.restartOne(ended.Name)
	if len(d.actions.Kill) > 0 || d.actions.Start[0].BackOff > 0 {
		return
	}
	d.actions.Start = nil // once all is forgotten, the pod is at its beginning
	for _, c := range d.status.Containers {
		if c.ID != ended.ID && core.FindContainer(d.pod, c.Name) != nil && !isEphemeral(d.pod, c.Name) {
			d.actions.Remove = append(d.actions.Remove, c.ID)
		}
	}
	d.actions.Remove = append(d.actions.Remove, ended.ID)
}

// restartOne says when the container of that name may run again.
func (d *decision) restartOne(name string) {
	named := func(c core.Container) bool { return c.Name == name }
	if i := slices.IndexFunc(d.pod.Spec.InitContainers, named); i >= 0 {
		d.addStart(Init, i, name)
		return
	}
	d.addStart(Regular, slices.IndexFunc(d.pod.Spec.Containers, named), name)
}

func isEphemeral(pod *core.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name })
}
