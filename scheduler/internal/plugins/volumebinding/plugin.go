package volumebinding

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/shape"
	"kctl/scheduler/internal/volumes"
)

// Name of the plugin in configurations and metrics.
const Name = "VolumeBinding"

const stateKey framework.StateKey = Name

var (
	skip            = framework.NewStatus(framework.Skip)
	refusedAffinity = refusal("node(s) didn't match PersistentVolume's node affinity")
	refusedMissing  = refusal("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
	refusedNone     = refusal("node(s) didn't find available persistent volumes to bind")
	refusedCapacity = refusal("node(s) did not have enough free storage")
)

func refusal(reasons ...string) *framework.Status {
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, reasons...).By(Name)
}

// Plugin implements PreFilter, Filter, PreScore, Score, Reserve and PreBind.
type Plugin struct {
	volumes *volumes.Volumes
	client  *rest.Client
	options Options
}

// Options are the plugin's arguments.
type Options struct {
	// Timeout is how long the binding of a pod's volumes may take.
	Timeout time.Duration
	// Shape gives the score of a node by the share of its storage that the pod asks for.
	Shape shape.Function
}

// DefaultOptions are upstream's: the more is left, the better.
var DefaultOptions = Options{Timeout: 10 * time.Minute, Shape: shape.Function{{Utilization: 0, Score: 100}, {Utilization: 100, Score: 0}}}

// New returns the plugin.
func New(known *volumes.Volumes, client *rest.Client, options Options) *Plugin {
	return &Plugin{volumes: known, client: client, options: options}
}

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// claims are those of a pod: with their volumes, and those that wait for a node.
type claims struct {
	bound   []*corev1.PersistentVolumeClaim
	waiting []*corev1.PersistentVolumeClaim
	plan    *plan // for the node that was chosen
}

// plan says how the claims that wait get their volumes.
type plan struct {
	static    []match
	provision []provision
}

type match struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

// provision is a volume that is to be made, and the room for it; nil room if the
// driver does not report it.
type provision struct {
	claim *corev1.PersistentVolumeClaim
	room  *resource.Quantity
	since string // the resource version at which the claim got its node
}

// PreFilter sorts the pod's claims.
func (p *Plugin) PreFilter(ctx context.Context, state *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	if !volumes.HasClaims(pod.Pod) {
		return nil, skip
	}
	all, status := p.volumes.Of(ctx, pod.Pod, Name)
	if status != nil {
		return nil, status
	}
	for _, claim := range all { // before any of them is sorted, as upstream
		switch {
		case claim.Status.Phase == corev1.ClaimLost:
			return nil, refusal(fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", claim.Name, claim.Spec.VolumeName))
		case claim.DeletionTimestamp != nil:
			return nil, refusal(fmt.Sprintf("persistentvolumeclaim %q is being deleted", claim.Name))
		}
	}
	found := &claims{}
	for _, claim := range all {
		switch {
		case volumes.IsBound(claim):
			found.bound = append(found.bound, claim)
		case p.volumes.Waits(claim):
			found.waiting = append(found.waiting, claim)
		default:
			return nil, refusal("pod has unbound immediate PersistentVolumeClaims")
		}
	}
	slices.SortStableFunc(found.waiting, inTurn)
	state.Write(stateKey, found)
	return nil, nil
}

// inTurn orders claims: first those with a selected node, because they can't
// move to another, then by size, so that small claims don't take the volumes
// that large ones need. Equal ones stay in the pod's order, as upstream.
func inTurn(a, b *corev1.PersistentVolumeClaim) int {
	sizeA, sizeB := a.Spec.Resources.Requests[corev1.ResourceStorage], b.Spec.Resources.Requests[corev1.ResourceStorage]
	if begun := metav1.HasAnnotation(a.ObjectMeta, volumes.SelectedNode); begun != metav1.HasAnnotation(b.ObjectMeta, volumes.SelectedNode) {
		if begun {
			return -1
		}
		return 1
	}
	return sizeA.Cmp(sizeB)
}

// Filter implements framework.Filter. A node can fail for both bound and
// unbound claims, and then reports both.
func (p *Plugin) Filter(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	found, ok := state.Read(stateKey).(*claims)
	if !ok {
		return framework.Unprepared(Name)
	}
	bound := p.usable(found.bound, node.Node)
	_, waiting := p.plan(found.waiting, node.Node)
	switch {
	case bound == nil:
		return waiting
	case waiting == nil || bound.Code() == framework.Error:
		return bound
	}
	return refusal(bound.Reasons()[0], waiting.Reasons()[0])
}

// usable reports whether the volumes of bound claims can be used on a node.
func (p *Plugin) usable(bound []*corev1.PersistentVolumeClaim, node *core.Node) *framework.Status {
	for _, claim := range bound {
		volume, known := p.volumes.Volume(claim.Spec.VolumeName)
		if !known {
			return refusedMissing
		}
		volume, err := p.volumes.Migrated(volume, node.Name)
		if err != nil {
			return framework.AsError(fmt.Errorf("persistent volume %s: %w", claim.Spec.VolumeName, err))
		}
		if !volumes.OnNode(volume, node) {
			return refusedAffinity
		}
	}
	return nil
}

// plan finds volumes on a node for claims that wait.
func (p *Plugin) plan(waiting []*corev1.PersistentVolumeClaim, node *core.Node) (*plan, *framework.Status) {
	if len(waiting) == 0 {
		return nil, nil
	}
	made, taken := &plan{}, map[string]bool{}
	for _, claim := range waiting {
		if selected, begun := claim.Annotations[volumes.SelectedNode]; begun {
			if selected != node.Name {
				return nil, refusedNone // it is being made elsewhere
			}
		} else if volume := p.volumes.Find(claim, node, taken); volume != nil {
			taken[volume.Name] = true
			made.static = append(made.static, match{claim, volume})
			continue
		}
		possible, room := p.volumes.Provisioning(claim, node)
		switch possible {
		case volumes.Impossible:
			return nil, refusedNone
		case volumes.NoCapacity:
			return nil, refusedCapacity
		}
		made.provision = append(made.provision, provision{claim: claim, room: room})
	}
	return made, nil
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	const either = framework.Add | framework.Update
	return []framework.ClusterEventWithHint{
		{Resource: framework.ClaimEvent, ActionType: either, QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
			return volumes.Names(pod.Pod, event.Claim)
		}},
		{Resource: framework.VolumeEvent, ActionType: either},
		{Resource: framework.ClassEvent, ActionType: either},
		{Resource: framework.CapacityEvent, ActionType: either},
		{Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeLabel},
	}
}
