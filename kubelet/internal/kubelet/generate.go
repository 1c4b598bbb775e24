package kubelet

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// generate makes the pod's status from its state in the runtime.
func (k *Kubelet) generate(pod *core.Pod, runtime *runtimestate.PodStatus, terminal bool) core.PodStatus {
	api := &pod.Status
	if current, ok := k.pods.ByUID(pod.UID); ok {
		if object := k.pods.APIPod(current); object != nil {
			api = &object.Status
		}
	}
	last, ok := k.statuses.Get(pod.UID)
	if !ok {
		last = *api
		if podmanager.IsStatic(pod) {
			last = pod.Status // a mirror may be of an earlier pod
		}
	}
	return status.Generate(status.Input{
		Pod: pod, Previous: status.Previous(&last, api), Runtime: runtime, Waiting: k.waits.of(pod.UID), Terminal: terminal,
		Ready:   func(container string, id runtimestate.ContainerID) bool { return k.probes.Ready(pod, container, id) },
		Started: func(container string, id runtimestate.ContainerID) bool { return k.probes.Started(pod, container, id) },
		Resources: func(container string) (granted, actual corev1.ResourceRequirements, known bool) {
			return k.allocations.Container(pod.UID, container)
		},
		PodResources: func() (granted, actual *core.Pod, known bool) { return k.allocations.Pods(pod) },
		Resize:       k.resizeConditions(pod.UID, runtime),
		HostIPs:      k.hostIPs, Now: k.clock.Now(),
	})
}

// report puts a change that we made in the runtime into the cache, and sends it
// to the API at once.
func (k *Kubelet) report(pod *core.Pod, runtime *runtimestate.PodStatus) {
	if runtime.ReadySandbox() != nil {
		k.statuses.Recorder(pod).Stamp(relay.KubeletSandboxCreated, k.clock.Now())
	}
	k.cache.Set(pod.UID, runtime, nil, runtime.At)
	k.probes.Changed(pod.UID)
	if !k.workers.TerminationRequested(pod.UID) {
		k.statuses.Set(pod, k.generate(pod, runtime, false))
	}
}
