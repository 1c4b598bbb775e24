package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// generate makes the pod's status from its state in the runtime.
func (l *Lifecycle) generate(pod *core.Pod, found *runtimestate.PodStatus, terminal bool) core.PodStatus {
	api := &pod.Status
	if current, ok := l.Pods.ByUID(pod.UID); ok {
		if object := l.Pods.APIPod(current); object != nil {
			api = &object.Status
		}
	}
	last, ok := l.Statuses.Get(pod.UID)
	if !ok {
		last = *api
		if podmanager.IsStatic(pod) {
			last = pod.Status // a mirror may be of an earlier pod
		}
	}
	if podmanager.IsStatic(pod) && !l.Statuses.Settled(pod.UID) && reportedOf(api, found) {
		last.StartTime, last.Conditions = api.StartTime, api.Conditions // as an earlier kubelet told
	}
	return status.Generate(status.Input{
		Pod: pod, Previous: status.Previous(&last, api), Runtime: found, Waiting: l.records.of(pod.UID).waiting,
		Terminal: terminal, HostIPs: l.HostIPs(), Now: l.Clock.Now(),
		Ready:   func(container string, id runtimestate.ContainerID) bool { return l.Probes.Ready(pod, container, id) },
		Started: func(container string, id runtimestate.ContainerID) bool { return l.Probes.Started(pod, container, id) },
		Resources: func(container string) (granted, actual corev1.ResourceRequirements, known bool) {
			return l.Allocations.Container(pod.UID, container)
		},
		PodResources: func() (granted, actual *core.Pod, known bool) { return l.Allocations.Pods(pod) },
		Resize:       l.resizeConditions(pod.UID, found),
	})
}

// reportedOf tells whether a status is of the pod whose containers the runtime has: it knows
// one of them.
func reportedOf(reported *core.PodStatus, found *runtimestate.PodStatus) bool {
	for c := range core.ContainerStatuses(reported) {
		if now := found.Container(c.Name); now != nil && now.ID.String() == c.ContainerID {
			return true
		}
	}
	return false
}

// report puts a change that we made in the runtime into the cache, and sends it
// to the API at once.
func (l *Lifecycle) report(pod *core.Pod, found *runtimestate.PodStatus) {
	if found.ReadySandbox() != nil {
		l.Statuses.Stamps(pod).Stamp(relay.KubeletSandboxCreated, l.Clock.Now())
	}
	l.Cache.Set(pod.UID, found, nil, found.At)
	l.Probes.Changed(pod.UID)
	if !l.Ending(pod.UID) {
		settled := l.Probes.Settled(pod, found)
		l.set(pod, l.generate(pod, found, false), settled)
	}
}

// set sets the pod's status, which is sent if it is settled: if it does not lack what
// only the mirror of a static pod says, what an earlier kubelet reported. That
// is asked before the status is made, since the mirror may come meanwhile; its coming
// makes the pod's worker look again.
func (l *Lifecycle) set(pod *core.Pod, current core.PodStatus, settled bool) {
	if settled {
		l.Statuses.Set(pod, current)
	} else {
		l.Statuses.SetUnsettled(pod, current)
	}
}
