package volumebinding

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/shape"
	"kctl/scheduler/internal/volumes"
)

// PreScore skips pods whose claims don't depend on the choice of a node.
func (p *Plugin) PreScore(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	if found, ok := state.Read(stateKey).(*claims); !ok || len(found.waiting) == 0 {
		return skip
	}
	return nil
}

// Score ranks a node by how much of its storage the pod's claims would take (KEP
// 4049): of the existing volumes, or, if all would have to be made, of the room
// that drivers report. All classes count the same.
func (p *Plugin) Score(_ context.Context, state *framework.CycleState, _ *framework.PodInfo,
	node *framework.NodeInfo) (int64, *framework.Status) {
	found, ok := state.Read(stateKey).(*claims)
	if !ok {
		return 0, nil
	}
	made, status := p.plan(found.waiting, node.Node)
	if !status.IsSuccess() || made == nil {
		return 0, nil // it fitted a moment ago: Reserve will see
	}
	all := made.shares()
	if len(all) == 0 {
		return 0, nil
	}
	var sum int64
	for _, class := range all {
		sum += p.options.Shape.At(class.percent())
	}
	return int64(math.Round(float64(sum) / float64(len(all)))), nil
}

// share is what claims of one class ask for, of how much there is.
type share struct{ asked, there int64 }

func (s share) percent() int64 {
	if s.asked >= s.there {
		return framework.MaxNodeScore
	}
	return shape.Percent(s.asked, s.there)
}

// shares are those of the classes that count.
func (made *plan) shares() map[string]share {
	all := map[string]share{}
	for _, m := range made.static {
		capacity := m.volume.Spec.Capacity[corev1.ResourceStorage]
		all[volumes.ClassName(m.claim)] = all[volumes.ClassName(m.claim)].plus(m.claim, capacity.Value())
	}
	if len(made.static) > 0 {
		return all
	}
	for _, wanted := range made.provision {
		if wanted.room != nil {
			all[volumes.ClassName(wanted.claim)] = all[volumes.ClassName(wanted.claim)].plus(wanted.claim, wanted.room.Value())
		}
	}
	return all
}

func (s share) plus(claim *corev1.PersistentVolumeClaim, there int64) share {
	asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return share{framework.AddCapped(s.asked, asked.Value()), framework.AddCapped(s.there, there)}
}
