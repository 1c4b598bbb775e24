package kubelet

import (
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/probe"
	"kctl/kubelet/internal/runtimestate"
)

// makeProbes makes what probes containers.
func (k *Kubelet) makeProbes() {
	var asker probe.ProbeRunner = noProbes{}
	if k.hollow == nil {
		asker = probe.NewProber(k.cri, func() string { return k.hostIPs[0] })
	}
	k.probes = probe.NewManager(probe.Config{
		Runner: asker,
		Status: func(uid types.UID) (*runtimestate.PodStatus, error) { return k.cache.Get(uid) },
		Events: k.events, Observe: k.metrics.Probes.Observe, Forget: k.metrics.Probes.Forget, Clock: k.clock, Logger: k.logger,
	})
}
