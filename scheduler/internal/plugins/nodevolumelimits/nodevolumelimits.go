// Package nodevolumelimits is the plugin NodeVolumeLimits: a node's CSI drivers can
// mount only as many volumes as its CSINode says, and some drivers only where they
// are installed (KEP-5030). The profile builds it.
package nodevolumelimits

import (
	"context"
	"fmt"

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
	if !hasVolumes(pod.Pod) {
		return nil, skip
	}
	if err := p.volumes.Ready(ctx); err != nil {
		return nil, framework.AsError(err)
	}
	return nil, nil
}

// hasVolumes reports whether drivers may have to mount volumes for pod.
func hasVolumes(pod *core.Pod) bool { return volumes.HasClaims(pod) || volumes.HasMigratable(pod) }

// attached are volumes by what a driver knows them by, and their drivers.
type attached map[string]string

func (a attached) add(driver, handle string) { a[driver+"/"+handle] = driver }

// Filter implements framework.Filter.
func (p *Plugin) Filter(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	wanted := attached{}
	if err := p.collect(pod.Pod, node.Name(), wanted); err != nil {
		return framework.AsError(err)
	}
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
		if err := p.collect(other.Pod, node.Name(), there); err != nil {
			return framework.AsError(err)
		}
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

// collect adds the CSI volumes that a pod has on a node: one that is yet to be provisioned
// counts for the driver that will do it, and an in-tree volume for the driver that mounts it.
func (p *Plugin) collect(pod *core.Pod, node string, into attached) error {
	for i := range pod.Spec.Volumes {
		inline, err := p.volumes.Inline(&pod.Spec.Volumes[i], pod.Namespace, node)
		switch {
		case err != nil:
			return fmt.Errorf("volume %s of pod %s/%s: %w", pod.Spec.Volumes[i].Name, pod.Namespace, pod.Name, err)
		case inline != nil:
			into.add(inline.Driver, inline.VolumeHandle)
			continue
		}
		claim, err := p.volumes.Claim(pod, &pod.Spec.Volumes[i])
		if err != nil || claim == nil {
			continue
		}
		if driver, volume := p.volumeOf(claim, node); driver != "" {
			into.add(driver, volume)
		}
	}
	return nil
}

func (p *Plugin) volumeOf(claim *corev1.PersistentVolumeClaim, node string) (driver, volume string) {
	if claim.Spec.VolumeName != "" {
		if found, known := p.volumes.Volume(claim.Spec.VolumeName); known {
			source := p.volumes.Source(found, node)
			if source == nil {
				return "", ""
			}
			return source.Driver, source.VolumeHandle
		}
	}
	if class := p.volumes.Class(claim); class != nil {
		return p.volumes.Driver(class, node), claim.Namespace + "/" + claim.Name
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
				return hasVolumes(event.OldPod)
			}},
		{Resource: framework.ClaimEvent, ActionType: either, QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
			return volumes.Names(pod.Pod, event.Claim)
		}},
		{Resource: framework.NodeEvent, ActionType: framework.Add},
	}
}
