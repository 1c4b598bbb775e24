package kubelet

import (
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/probe"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// makeProbes makes what probes containers.
func (k *Kubelet) makeProbes() {
	var asker probe.ProbeRunner = noProbes{}
	if k.hollow == nil {
		asker = probe.NewProber(k.cri, func() string { return k.hostIPs[0] })
	}
	k.probes = probe.NewManager(probe.Config{
		Runner:   asker,
		Status:   func(uid types.UID) (*runtimestate.PodStatus, error) { return k.cache.Get(uid) },
		Reported: k.reported,
		Events:   k.events, Observe: k.metrics.Probes.Observe, Forget: k.metrics.Probes.Forget, Clock: k.clock, Logger: k.logger,
	})
}

// reported is a pod's status in the API; nil for a static pod whose mirror is not there,
// or not known yet.
func (k *Kubelet) reported(pod *core.Pod) *core.PodStatus {
	if object := k.pods.APIPod(pod); object != nil {
		return &object.Status
	}
	return nil
}
