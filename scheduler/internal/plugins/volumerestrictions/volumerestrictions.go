// Package volumerestrictions is the plugin VolumeRestrictions: volumes that only
// one pod, or the pods of one node, may use at a time are not given to a second:
// claims with the access mode ReadWriteOncePod, and disks named in the pod
// itself. The profile builds it.
package volumerestrictions

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/volumes"
)

// Name of the plugin in configurations and metrics.
const Name = "VolumeRestrictions"

const stateKey framework.StateKey = Name

var (
	skip        = framework.NewStatus(framework.Skip)
	refusedDisk = framework.NewStatus(framework.Unschedulable, "node(s) had no available disk").By(Name)
	refusedUse  = framework.NewStatus(framework.Unschedulable,
		"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod").By(Name)
)

// Plugin implements PreFilter with its extensions and Filter.
type Plugin struct{ volumes *volumes.Volumes }

// New returns the plugin.
func New(known *volumes.Volumes) *Plugin { return &Plugin{known} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// uses counts the pods that have claims which only one may have.
type uses struct {
	once []string // the names of those claims
	pods int
}

// Clone implements framework.Cloner.
func (u *uses) Clone() any {
	c := *u
	return &c
}

// PreFilter looks for other pods that have the pod's claims.
func (p *Plugin) PreFilter(ctx context.Context, state *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	if len(pod.Pod.Spec.Volumes) == 0 {
		return nil, skip
	}
	found := &uses{}
	disks := slices.ContainsFunc(pod.Pod.Spec.Volumes, isDisk)
	if volumes.HasClaims(pod.Pod) {
		claims, status := p.volumes.Of(ctx, pod.Pod, Name)
		if status != nil {
			return nil, status
		}
		for _, claim := range claims {
			if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
				found.once = append(found.once, claim.Name)
			}
		}
	}
	if len(found.once) == 0 && !disks {
		return nil, skip
	}
	if len(found.once) > 0 {
		for _, node := range state.Nodes {
			for _, other := range node.Pods {
				found.pods += found.of(pod.Pod, other.Pod)
			}
		}
	}
	state.Write(stateKey, found)
	return nil, nil
}

// of counts the claims that other has, too.
func (u *uses) of(pod, other *core.Pod) int {
	n := 0
	if other.Namespace != pod.Namespace {
		return n
	}
	for i := range other.Spec.Volumes {
		if slices.Contains(u.once, core.ClaimName(other, &other.Spec.Volumes[i])) {
			n++
		}
	}
	return n
}

// AddPod implements framework.PreFilterExtensions.
func (*Plugin) AddPod(_ context.Context, state *framework.CycleState, pod, added *framework.PodInfo,
	_ *framework.NodeInfo) *framework.Status {
	if found, ok := state.Read(stateKey).(*uses); ok {
		found.pods += found.of(pod.Pod, added.Pod)
	}
	return nil
}

// RemovePod implements framework.PreFilterExtensions.
func (*Plugin) RemovePod(_ context.Context, state *framework.CycleState, pod, removed *framework.PodInfo,
	_ *framework.NodeInfo) *framework.Status {
	if found, ok := state.Read(stateKey).(*uses); ok {
		found.pods -= found.of(pod.Pod, removed.Pod)
	}
	return nil
}

// Filter implements framework.Filter.
func (*Plugin) Filter(_ context.Context, state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	for i := range pod.Pod.Spec.Volumes {
		volume := &pod.Pod.Spec.Volumes[i]
		if !isDisk(*volume) {
			continue
		}
		for _, other := range node.Pods {
			if slices.ContainsFunc(other.Pod.Spec.Volumes, func(v corev1.Volume) bool { return conflict(volume, &v) }) {
				return refusedDisk
			}
		}
	}
	found, ok := state.Read(stateKey).(*uses)
	switch {
	case !ok:
		return framework.Unprepared(Name)
	case found.pods > 0:
		return refusedUse
	}
	return nil
}

// inTheWay reports whether other prevents pod from using all of its volumes.
func inTheWay(pod, other *core.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		name := core.ClaimName(pod, &v)
		return slices.ContainsFunc(other.Spec.Volumes, func(o corev1.Volume) bool {
			return conflict(&v, &o) || name != "" && pod.Namespace == other.Namespace && core.ClaimName(other, &o) == name
		})
	})
}

func isDisk(v corev1.Volume) bool {
	return v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil
}

// conflict reports whether two volumes are the same disk and can't both be used:
// most can be read by several, as long as none writes.
func conflict(a, b *corev1.Volume) bool {
	switch {
	case a.GCEPersistentDisk != nil && b.GCEPersistentDisk != nil:
		x, y := a.GCEPersistentDisk, b.GCEPersistentDisk
		return x.PDName == y.PDName && !(x.ReadOnly && y.ReadOnly)
	case a.AWSElasticBlockStore != nil && b.AWSElasticBlockStore != nil:
		return a.AWSElasticBlockStore.VolumeID == b.AWSElasticBlockStore.VolumeID
	case a.ISCSI != nil && b.ISCSI != nil:
		return a.ISCSI.IQN == b.ISCSI.IQN && !(a.ISCSI.ReadOnly && b.ISCSI.ReadOnly)
	case a.RBD != nil && b.RBD != nil:
		x, y := a.RBD, b.RBD
		one := x.RBDPool == y.RBDPool && x.RBDImage == y.RBDImage &&
			slices.ContainsFunc(x.CephMonitors, func(m string) bool { return slices.Contains(y.CephMonitors, m) })
		return one && !(x.ReadOnly && y.ReadOnly)
	}
	return false
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{
		{Resource: framework.AssignedPodEvent, ActionType: framework.Delete,
			QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
				return inTheWay(pod.Pod, event.OldPod)
			}},
		{Resource: framework.NodeEvent, ActionType: framework.Add},
		{Resource: framework.ClaimEvent, ActionType: framework.Add | framework.Update,
			QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
				return volumes.Names(pod.Pod, event.Claim)
			}},
	}
}
