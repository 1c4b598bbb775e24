// Package nodevolumelimits is the plugin NodeVolumeLimits: a node's CSI drivers can
// mount only as many volumes as its CSINode says, and some drivers only where they
// are installed (KEP-5030). The profile builds it.
package nodevolumelimits

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/volumes"
)

// Name of the plugin in configurations and metrics.
const Name = "NodeVolumeLimits"

var (
	skip    = framework.NewStatus(framework.Skip)
	refused = framework.NewStatus(framework.Unschedulable, "node(s) exceed max volume count").By(Name)
)

// Plugin implements PreFilter and Filter.
type Plugin struct{ volumes *volumes.Volumes }

// New returns the plugin.
func New(known *volumes.Volumes) *Plugin { return &Plugin{known} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// PreFilter implements framework.PreFilter.
func (p *Plugin) PreFilter(ctx context.Context, _ *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	if !volumes.HasClaims(pod.Pod) {
		return nil, skip
	}
	if err := p.volumes.Ready(ctx); err != nil {
		return nil, framework.AsError(err)
	}
	return nil, nil
}

// attached are volumes by what a driver knows them by, and their drivers.
type attached map[string]string

func (a attached) add(driver, handle string) { a[driver+"/"+handle] = driver }

// Filter implements framework.Filter.
func (p *Plugin) Filter(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	wanted := attached{}
	p.collect(pod.Pod, wanted)
	for _, driver := range wanted {
		if !p.volumes.Installed(driver, node.Name()) {
			return framework.NewStatus(framework.Unschedulable, driver+" CSI driver is not installed on the node").By(Name)
		}
	}
	limits := p.volumes.Limits(node.Name())
	if len(wanted) == 0 || len(limits) == 0 {
		return nil
	}
	there := attached{}
	p.volumes.EachAttached(node.Name(), func(driver, handle string) { there.add(driver, handle) })
	for _, other := range node.Pods {
		p.collect(other.Pod, there)
	}
	used := map[string]int64{}
	for _, driver := range there {
		used[driver]++
	}
	for volume, driver := range wanted {
		if _, already := there[volume]; already {
			continue
		}
		used[driver]++
		if limit, has := limits[driver]; has && used[driver] > limit {
			return refused
		}
	}
	return nil
}

// collect adds the CSI volumes of a pod: one that is yet to be provisioned
// counts for the driver that will do it.
func (p *Plugin) collect(pod *core.Pod, into attached) {
	for i := range pod.Spec.Volumes {
		claim, err := p.volumes.Claim(pod, &pod.Spec.Volumes[i])
		if err != nil || claim == nil {
			continue
		}
		if driver, volume := p.volumeOf(claim); driver != "" {
			into.add(driver, volume)
		}
	}
}

func (p *Plugin) volumeOf(claim *corev1.PersistentVolumeClaim) (driver, volume string) {
	if claim.Spec.VolumeName != "" {
		if found, known := p.volumes.Volume(claim.Spec.VolumeName); known {
			if found.Spec.CSI == nil {
				return "", ""
			}
			return found.Spec.CSI.Driver, found.Spec.CSI.VolumeHandle
		}
	}
	if class := p.volumes.Class(claim); class != nil {
		return class.Provisioner, claim.Namespace + "/" + claim.Name
	}
	return "", ""
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	const either = framework.Add | framework.Update
	return []framework.ClusterEventWithHint{
		{Resource: framework.NodeVolumesEvent, ActionType: either},
		{Resource: framework.AttachmentEvent, ActionType: framework.Delete},
		{Resource: framework.AssignedPodEvent, ActionType: framework.Delete,
			QueueingHintFn: func(_ *framework.PodInfo, event framework.ClusterEvent) bool {
				return volumes.HasClaims(event.OldPod)
			}},
		{Resource: framework.ClaimEvent, ActionType: either, QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
			return volumes.Names(pod.Pod, event.Claim)
		}},
		{Resource: framework.NodeEvent, ActionType: framework.Add},
	}
}
