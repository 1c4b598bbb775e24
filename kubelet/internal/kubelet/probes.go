package kubelet

import (
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/probe"
	"kctl/proto/core"
)

// newProbes makes what probes containers.
func (g *given) newProbes(runtime *cri.Client, cache *podcache.Cache, pods *podmanager.Manager, events *podEvents) *probe.Manager {
	var asker probe.ProbeRunner = noProbes{}
	if g.hollow == nil {
		asker = probe.NewProber(runtime, func() string { return g.identity.HostIPs()[0] })
	}
	return probe.NewManager(probe.Config{
		Runner:   asker,
		Status:   cache.Get,
		Reported: func(pod *core.Pod) *core.PodStatus { return reported(pods, pod) },
		Events:   events, Observe: g.metrics.Probes.Observe, Forget: g.metrics.Probes.Forget, Clock: g.clock, Logger: g.logger,
	})
}

// reported is a pod's status in the API; nil for a static pod whose mirror is not there,
// or not known yet.
func reported(pods *podmanager.Manager, pod *core.Pod) *core.PodStatus {
	if object := pods.APIPod(pod); object != nil {
		return &object.Status
	}
	return nil
}
