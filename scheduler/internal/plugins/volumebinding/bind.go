package volumebinding

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/volumes"
)

// Reserve keeps the volumes that were found on the node for the pod's claims.
func (p *Plugin) Reserve(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, node string) *framework.Status {
	found, ok := state.Read(stateKey).(*claims)
	if !ok || len(found.waiting) == 0 {
		return nil
	}
	on := state.Node(node)
	if on == nil {
		return framework.AsError(fmt.Errorf("node %s no longer exists", node))
	}
	made, status := p.plan(found.waiting, on.Node)
	if !status.IsSuccess() {
		return status
	}
	for _, m := range made.static {
		p.volumes.Choose(m.volume.Name, m.claim.UID)
	}
	found.plan = made
	return nil
}

// Unreserve gives them back. What was written stays: the next attempt finds it.
func (p *Plugin) Unreserve(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, _ string) {
	found, ok := state.Read(stateKey).(*claims)
	if !ok || found.plan == nil {
		return
	}
	for _, m := range found.plan.static {
		p.volumes.Drop(m.volume.Name)
	}
	found.plan = nil
}

// PreBindTakesLong implements framework.LongPreBind: volumes are bound and made by
// others, which may take minutes.
func (p *Plugin) PreBindTakesLong(state *framework.CycleState) bool {
	found, ok := state.Read(stateKey).(*claims)
	return ok && found.plan != nil
}

// PreBind writes what was planned, and waits until all claims have their volumes.
func (p *Plugin) PreBind(ctx context.Context, state *framework.CycleState, _ *framework.PodInfo, node string) *framework.Status {
	found, ok := state.Read(stateKey).(*claims)
	if !ok || found.plan == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	if err := p.write(ctx, found.plan, node); err != nil {
		return framework.AsError(fmt.Errorf("binding volumes: %w", err))
	}
	if err := p.await(ctx, found, node); err != nil {
		return framework.AsError(fmt.Errorf("binding volumes: %w", err))
	}
	for _, m := range found.plan.static {
		p.volumes.Drop(m.volume.Name)
	}
	return nil
}

func (p *Plugin) write(ctx context.Context, made *plan, node string) error {
	for _, m := range made.static {
		if m.volume.Spec.ClaimRef != nil && m.volume.Spec.ClaimRef.UID == m.claim.UID {
			continue
		}
		err := p.patch(ctx, volumes.VolumeResource, m.volume, map[string]string{volumes.BoundByController: "yes"}, map[string]any{
			"claimRef": corev1.ObjectReference{
				APIVersion: "v1", Kind: volumes.ClaimResource.Kind, Namespace: m.claim.Namespace, Name: m.claim.Name,
				UID: m.claim.UID, ResourceVersion: m.claim.ResourceVersion,
			},
		}, nil)
		if err != nil {
			return fmt.Errorf("persistent volume %s for claim %s: %w", m.volume.Name, m.claim.Name, err)
		}
	}
	for i := range made.provision {
		claim := made.provision[i].claim
		if claim.Annotations[volumes.SelectedNode] == node {
			made.provision[i].since = claim.ResourceVersion
			continue
		}
		var written metav1.PartialObjectMetadata
		if err := p.patch(ctx, volumes.ClaimResource, claim, map[string]string{volumes.SelectedNode: node}, nil, &written); err != nil {
			return fmt.Errorf("node of claim %s: %w", claim.Name, err)
		}
		made.provision[i].since = written.ResourceVersion
	}
	return nil
}

// patch annotates obj and changes its specification, if it has not changed meanwhile; into is what it
// is then.
func (p *Plugin) patch(ctx context.Context, resource core.Resource, obj core.Object, annotations map[string]string, spec map[string]any,
	into any) error {
	change := map[string]any{"metadata": map[string]any{
		"resourceVersion": obj.GetResourceVersion(), "annotations": annotations,
	}}
	if spec != nil {
		change["spec"] = spec
	}
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return p.client.Resource(resource, obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, body, into)
}

// await waits for the volume controller. A driver that can't make a volume on the
// node removes the node from the claim again, and the pod has to look elsewhere. The watch
// need not show the claim in between: a driver may be quicker than we look.
func (p *Plugin) await(ctx context.Context, found *claims, node string) error {
	since := map[types.UID]string{}
	if found.plan != nil {
		for _, wanted := range found.plan.provision {
			since[wanted.claim.UID] = wanted.since
		}
	}
	for {
		changed := p.volumes.Changed()
		bound := 0
		for _, claim := range found.waiting {
			now, known := p.volumes.Current(claim)
			if !known {
				return fmt.Errorf("persistentvolumeclaim %q no longer exists", claim.Name)
			}
			if volumes.IsBound(now) {
				bound++
				continue
			}
			switch at := now.Annotations[volumes.SelectedNode]; {
			case at == node:
			case at != "" || isSince(now, since[claim.UID]):
				return fmt.Errorf("no volume for persistentvolumeclaim %q could be provisioned on node %s", claim.Name, node)
			}
		}
		if bound == len(found.waiting) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("claims without their volumes: %d: %w", len(found.waiting)-bound, ctx.Err())
		}
	}
}

// isSince tells whether the claim is as it was at the resource version, or later.
func isSince(claim *corev1.PersistentVolumeClaim, version string) bool {
	order, err := resourceversion.CompareResourceVersion(claim.ResourceVersion, version)
	return err == nil && order >= 0
}
