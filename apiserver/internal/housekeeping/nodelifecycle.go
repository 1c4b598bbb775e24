package housekeeping

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// nodeStartupGrace is how long a new node may take to report.
const nodeStartupGrace = time.Minute

// nodeState is what the loops know of a node.
type nodeState struct {
	name, zone    string
	uid           types.UID
	created       metav1.Time
	conditions    map[corev1.NodeConditionType]corev1.ConditionStatus
	heartbeat     metav1.Time // of the Ready condition
	unschedulable bool
	taints        []corev1.Taint
}

func nodeStateOf(obj core.Object) nodeState {
	node := obj.(*core.Node)
	n := nodeState{
		name: node.Name, zone: zoneOf(node.Labels), uid: node.UID, created: node.CreationTimestamp,
		unschedulable: node.Spec.Unschedulable, taints: node.Spec.Taints,
		conditions: map[corev1.NodeConditionType]corev1.ConditionStatus{},
	}
	for _, c := range node.Status.Conditions {
		n.conditions[c.Type] = c.Status
		if c.Type == corev1.NodeReady {
			n.heartbeat = c.LastHeartbeatTime
		}
	}
	return n
}

// nodeLifecycle is the node lifecycle: a node that falls silent becomes Unknown, taints
// follow conditions, and the pods of a silent node are not ready any more. Those of a node
// that says itself that it is not ready are what its kubelet says of them: it would contradict
// at once, for each pod and each time that the node is looked at.
//
//	Ready=True    → no taint
//	Ready=False   → node.kubernetes.io/not-ready      NoSchedule, NoExecute
//	Ready=Unknown → node.kubernetes.io/unreachable    NoSchedule, NoExecute
//
// The pace of NoExecute taints, which evict pods, is set by outages.
type nodeLifecycle struct {
	nodes   *informer.Informer[nodeState]
	leases  *informer.Informer[metav1.MicroTime]
	pods    *informer.Informer[informer.Pod]
	store   registry.Resource
	podAPI  registry.Resource
	renewed registry.Resource // the leases as they are stored, and not as they were watched
	clock   clock.Clock
	logger  *zap.Logger
	grace   time.Duration
	events  nodeEvents
	outages *outages
	worker  *worker

	mu sync.Mutex
	// lastHeartbeat is when a sign of life was last seen, by this server's clock, so that
	// clock differences do no harm.
	lastHeartbeat map[string]time.Time
}

func newNodeLifecycle(d *Dependencies) (Loop, error) {
	n := &nodeLifecycle{
		pods: d.Pods, grace: d.NodeGrace, clock: d.Clock, logger: d.Logger, lastHeartbeat: map[string]time.Time{},
		events: nodeEvents{pending: map[string][]*core.Event{}}, outages: newOutages(d.Clock),
	}
	var err error
	if n.nodes, n.store, err = newInformer(d, core.Nodes, nodeStateOf); err != nil {
		return nil, err
	}
	renewed := func(obj core.Object) (t metav1.MicroTime) {
		if lease := obj.(*core.Lease); lease.Spec.RenewTime != nil && lease.Namespace == core.NamespaceNodeLease {
			t = *lease.Spec.RenewTime
		}
		return t
	}
	if n.leases, n.renewed, err = newInformer(d, core.Leases, renewed); err != nil {
		return nil, err
	}
	if n.podAPI, err = d.Store(core.Pods); err != nil {
		return nil, err
	}
	if n.events.events, err = d.Store(core.Events); err != nil {
		return nil, err
	}
	n.worker = newWorker("node-lifecycle-controller", d, several, n.sync)
	n.nodes.OnChange(func(key informer.Key, old, now *nodeState) {
		n.recordChange(key, old, now)
		if now == nil {
			n.forget(key.Name)
		} else if old == nil || !old.heartbeat.Equal(&now.heartbeat) {
			n.recordHeartbeat(key.Name)
		}
		n.updateOutages(key.Name, n.outages.record(key.Name, now))
		n.worker.add(key)
	})
	n.leases.OnChange(func(key informer.Key, old, now *metav1.MicroTime) {
		if key.Namespace == core.NamespaceNodeLease && now != nil && old != nil && !old.Equal(now) {
			n.recordHeartbeat(key.Name)
		}
	})
	return runTogether(n.nodes.Run, n.leases.Run, afterSync(n.worker.run, n.nodes.Synced(), n.leases.Synced(), d.Pods.Synced()),
		afterSync(n.registerMetrics(d.Metrics), n.nodes.Synced())), nil
}

// updateOutages looks at all nodes again if none is ready any longer, or one is again. As none
// was heard from meanwhile, each gets as much time as if it had just been.
func (n *nodeLifecycle) updateOutages(node string, turned bool) {
	if !turned {
		return
	}
	everywhere := n.outages.noneReady()
	if everywhere {
		n.logger.Info("no node is ready: until one is, no pod is evicted for its node's sake", zap.String("node", node))
	} else {
		n.logger.Info("a node is ready: pods of those that are not may be evicted", zap.String("node", node))
	}
	for _, name := range n.outages.nodeNames() {
		if !everywhere {
			n.recordHeartbeat(name)
		}
		n.worker.add(informer.Key{Name: name})
	}
}

func (n *nodeLifecycle) recordHeartbeat(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lastHeartbeat[node] = n.clock.Now()
}

func (n *nodeLifecycle) forget(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.lastHeartbeat, node)
}

// timeSinceHeartbeat is how long a node has been silent.
func (n *nodeLifecycle) timeSinceHeartbeat(node string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clock.Since(n.lastHeartbeat[node])
}

// sync looks at one node, and records an event if it has come or gone.
func (n *nodeLifecycle) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	defer n.sendEvents(ctx, key.Name)
	return n.syncHealth(ctx, key)
}

// syncHealth looks at one node, and asks to be called again when it would count as lost.
func (n *nodeLifecycle) syncHealth(ctx context.Context, key informer.Key) (time.Duration, error) {
	node, ok := n.nodes.Get("", key.Name)
	if !ok {
		return 0, nil
	}
	ready, reported := node.conditions[corev1.NodeReady]
	grace := n.grace
	if !reported {
		grace = nodeStartupGrace
	}
	again := grace - n.timeSinceHeartbeat(key.Name)
	if !reported && again > 0 {
		return again, nil // admission has tainted it; it has not reported yet
	}
	if again <= 0 && ready != corev1.ConditionUnknown {
		behind, err := n.watchIsBehind(ctx, key.Name)
		if err != nil {
			return 0, err
		}
		if behind {
			n.logger.Info("a node that seemed silent has renewed its lease: the watch of leases is behind", zap.String("node", key.Name))
			n.recordHeartbeat(key.Name)
			again = n.grace
		}
	}
	if again <= 0 {
		again = n.grace
		if err := n.markUnknown(ctx, node); err != nil {
			return 0, err
		}
		ready = corev1.ConditionUnknown
		n.updateOutages(key.Name, n.outages.setHealth(key.Name, &nodeHealth{zone: node.zone}))
	}
	evict := false
	if ready != corev1.ConditionTrue {
		var wait time.Duration
		if wait, evict = n.shouldEvict(node); wait > 0 {
			again = min(again, wait)
		}
	}
	if err := n.updateTaints(ctx, node, ready, evict); err != nil {
		return 0, err
	}
	if ready == corev1.ConditionUnknown {
		if err := n.markPodsNotReady(ctx, key.Name); err != nil {
			return 0, err
		}
	}
	return again, nil
}

// watchIsBehind reports whether a node's stored lease is another than the one that was last
// seen. Events that come late, of a busy server for example, must not make nodes lost (gate
// NodeControllerLeaseCircuitBreaker).
func (n *nodeLifecycle) watchIsBehind(ctx context.Context, node string) (bool, error) {
	stored, err := n.renewed.Get(ctx, core.NamespaceNodeLease, node, "")
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the lease of a silent node: %w", err)
	}
	obj, err := n.renewed.Decode(stored)
	if err != nil {
		return false, fmt.Errorf("read the lease of a silent node: %w", err)
	}
	seen, _ := n.leases.Get(core.NamespaceNodeLease, node)
	renewed := obj.(*core.Lease).Spec.RenewTime
	return renewed != nil && !renewed.Equal(&seen), nil
}

// shouldEvict reports whether the pods of a node that is not ready are to be evicted, and if
// not yet, when to look again. Once they are, a change of reason makes no difference.
func (n *nodeLifecycle) shouldEvict(node nodeState) (again time.Duration, evict bool) {
	given := slices.ContainsFunc(noExecute(node.taints), func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
	if given && !n.outages.noneReady() {
		return 0, true
	}
	return n.outages.allowEviction(node.name)
}

// unknownConditions are the conditions that a silent kubelet no longer vouches for.
var unknownConditions = []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
	corev1.NodePIDPressure}

// markUnknown marks a silent node as lost.
func (n *nodeLifecycle) markUnknown(ctx context.Context, node nodeState) error {
	known := func(t corev1.NodeConditionType) bool { return node.conditions[t] != corev1.ConditionUnknown }
	if !slices.ContainsFunc(unknownConditions, known) {
		return nil
	}
	n.logger.Info("a node has fallen silent", zap.String("node", node.name), zap.Duration("for", n.timeSinceHeartbeat(node.name)))
	now := metav1.NewTime(n.clock.Now())
	err := modify(ctx, n.store, registry.Target{Name: node.name, Subresource: "status"}, func(current core.Object) (core.Object, error) {
		status := &current.(*core.Node).Status
		for _, t := range unknownConditions {
			setUnknown(status, t, now)
		}
		return current, nil
	})
	return ignoreNotFound(err, "mark the silent node")
}

func setUnknown(status *corev1.NodeStatus, t corev1.NodeConditionType, now metav1.Time) {
	i := slices.IndexFunc(status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == t })
	if i < 0 {
		status.Conditions = append(status.Conditions, corev1.NodeCondition{
			Type: t, Status: corev1.ConditionUnknown, LastTransitionTime: now,
			Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
		})
		return
	}
	c := &status.Conditions[i]
	if c.Status == corev1.ConditionUnknown {
		return
	}
	c.Status, c.LastTransitionTime = corev1.ConditionUnknown, now
	c.Reason, c.Message = "NodeStatusUnknown", "Kubelet stopped posting node status."
}

// ownTaints are the taints that this loop sets and removes.
var ownTaints = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnschedulable,
}

// markPodsNotReady marks the pods of a node as not ready.
func (n *nodeLifecycle) markPodsNotReady(ctx context.Context, node string) error {
	now := metav1.NewTime(n.clock.Now())
	for _, pod := range n.pods.ByIndex(node) {
		if !pod.Ready || pod.HasTerminated() {
			continue
		}
		err := modify(ctx, n.podAPI, registry.Target{Namespace: pod.Namespace, Name: pod.Name, Subresource: "status"},
			func(current core.Object) (core.Object, error) {
				status := &current.(*core.Pod).Status
				for i := range status.Conditions {
					if c := &status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
						c.Status, c.LastTransitionTime, c.Reason = corev1.ConditionFalse, now, "NodeNotReady"
					}
				}
				return current, nil
			})
		if err := ignoreNotFound(err, "mark a pod of the node"); err != nil {
			return err
		}
	}
	return nil
}

func ignoreNotFound(err error, doing string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
