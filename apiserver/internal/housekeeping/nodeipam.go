package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/podcidr"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
	"kctl/proto/events"
)

const nodeIPAMName = "node-ipam-controller"

// nodeIPAM gives each node a range of the cluster's pod addresses, one per
// family. Assignments are recorded in the nodes and nowhere else: after a
// restart, or under another leader, the loop starts from them, and a deleted
// node's range is free again.
type nodeIPAM struct {
	nodes  *informer.Informer[podCIDRState]
	store  registry.Resource
	events registry.Resource
	ranges []*podcidr.Range
	// services are ranges whose addresses no pod may have.
	services []netip.Prefix
	clock    clock.Clock
	logger   *zap.Logger
	worker   *worker

	mu sync.Mutex
	// assigned are ranges, by node, that may have been written and that the informer
	// does not show yet. Whether a failed write was carried out is unknown.
	assigned map[string][]netip.Prefix
	// reportedFull are the nodes for which there was no free range.
	reportedFull map[string]bool
}

// podCIDRState is what the loop knows of a node.
type podCIDRState struct {
	uid      types.UID
	ranges   []netip.Prefix
	assigned bool // even an unreadable one
}

func podCIDRStateOf(obj core.Object) podCIDRState {
	node := obj.(*core.Node)
	return podCIDRState{uid: node.UID, ranges: podcidr.Parse(node.Spec.PodCIDRs), assigned: len(node.Spec.PodCIDRs) > 0}
}

func newNodeIPAM(d *Dependencies) (Loop, error) {
	if len(d.PodCIDRs) == 0 {
		return runTogether(), nil
	}
	n := &nodeIPAM{
		ranges: d.PodCIDRs, services: d.ServiceRanges, clock: d.Clock, logger: d.Logger,
		assigned: map[string][]netip.Prefix{}, reportedFull: map[string]bool{},
	}
	var err error
	if n.nodes, n.store, err = newInformer(d, core.Nodes, podCIDRStateOf); err != nil {
		return nil, err
	}
	if n.events, err = d.Store(core.Events); err != nil {
		return nil, err
	}
	n.worker = newWorker(nodeIPAMName, d, several, n.sync)
	n.nodes.OnChange(n.handleChange)
	return runTogether(n.nodes.Run, afterSync(n.worker.run, n.nodes.Synced())), nil
}

func (n *nodeIPAM) handleChange(key informer.Key, old, now *podCIDRState) {
	if now != nil && !now.assigned && (old == nil || old.uid == now.uid) {
		n.worker.add(key)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	had := old != nil && old.assigned || n.assigned[key.Name] != nil
	delete(n.assigned, key.Name) // the informer shows it now, or it is free
	delete(n.reportedFull, key.Name)
	if now != nil && !now.assigned {
		n.worker.add(key) // another node of that name
	}
	if had && (now == nil || !now.assigned) {
		n.retryFull()
	}
}

// retryFull tries again for the nodes that got none, as a range is free. The caller holds the lock.
func (n *nodeIPAM) retryFull() {
	for name := range n.reportedFull {
		n.worker.add(informer.Key{Name: name})
	}
}

func (n *nodeIPAM) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	node, ok := n.nodes.Get("", key.Name)
	if !ok || node.assigned {
		return 0, nil
	}
	ranges, err := n.choose(key.Name)
	if errors.Is(err, podcidr.ErrFull) {
		n.reportFull(ctx, key.Name, node.uid, err)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return 0, n.assign(ctx, key.Name, node.uid, ranges)
}

// choose returns the ranges for a node: the same ones again until it is known
// whether they were written.
func (n *nodeIPAM) choose(node string) ([]netip.Prefix, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ranges := n.assigned[node]; ranges != nil {
		return ranges, nil
	}
	taken := slices.Clone(n.services)
	n.nodes.Each(func(_ informer.Key, other podCIDRState) { taken = append(taken, other.ranges...) })
	for _, ranges := range n.assigned {
		taken = append(taken, ranges...)
	}
	out := make([]netip.Prefix, 0, len(n.ranges))
	for _, r := range n.ranges {
		free, err := r.Free(taken)
		if err != nil {
			n.reportedFull[node] = true
			return nil, fmt.Errorf("%s: %w", r, err)
		}
		out = append(out, free)
	}
	n.assigned[node] = out
	return out, nil
}

func (n *nodeIPAM) assign(ctx context.Context, name string, uid types.UID, ranges []netip.Prefix) error {
	cidrs := make([]string, 0, len(ranges))
	for _, r := range ranges {
		cidrs = append(cidrs, r.String())
	}
	written, others := false, false
	err := modify(ctx, n.store, registry.Target{Name: name}, func(current core.Object) (core.Object, error) {
		node := current.(*core.Node)
		written = node.UID == uid && len(node.Spec.PodCIDRs) == 0
		others = len(node.Spec.PodCIDRs) > 0 && !slices.Equal(node.Spec.PodCIDRs, cidrs)
		if written {
			node.Spec.PodCIDR, node.Spec.PodCIDRs = cidrs[0], cidrs
		}
		return node, nil
	})
	if others || apierrors.IsNotFound(err) {
		n.mu.Lock()
		if n.assigned[name] != nil {
			delete(n.assigned, name) // it is certain that the node doesn't have them
			n.retryFull()
		}
		n.mu.Unlock()
	}
	if err == nil && written {
		n.logger.Info("a node has got its range of pod addresses", zap.String("node", name), zap.Strings("ranges", cidrs))
	}
	return ignoreNotFound(err, "give the node its range of pod addresses")
}

// reportFull records once, with upstream's event, that no range is free. The next
// one to become free is assigned.
func (n *nodeIPAM) reportFull(ctx context.Context, name string, uid types.UID, cause error) {
	n.logger.Warn("a node has no range of pod addresses; delete nodes that are gone, or give a larger --cluster-cidr",
		zap.String("node", name), zap.Error(cause))
	event := events.New(&core.ObjectReference{Kind: "Node", APIVersion: "v1", Name: name, UID: uid},
		corev1.EventSource{Component: nodeIPAMName}, corev1.EventTypeNormal, "CIDRNotAvailable",
		fmt.Sprintf("Node %s status is now: CIDRNotAvailable", name), n.clock.Now())
	WriteEvent(ctx, n.events, registry.ControllerManager, event, n.logger)
}
