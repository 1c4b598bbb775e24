package housekeeping

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
	"kctl/proto/events"
)

// nodeEvents records events about nodes that have come or gone. An earlier leader
// has reported nodes older than nodeStartupGrace.
type nodeEvents struct {
	events registry.Resource

	mu      sync.Mutex
	pending map[string][]*core.Event
}

func (n *nodeLifecycle) recordChange(key informer.Key, old, now *nodeState) {
	same := old != nil && now != nil && old.uid == now.uid
	if old != nil && !same {
		n.queueEvent(key, old, "RemovingNode", "Removing Node "+key.Name+" from Controller")
	}
	if now != nil && !same && n.clock.Since(now.created.Time) < nodeStartupGrace {
		n.queueEvent(key, now, "RegisteredNode", "Registered Node "+key.Name+" in Controller")
	}
}

func (n *nodeLifecycle) queueEvent(key informer.Key, node *nodeState, reason, message string) {
	event := events.New(&core.ObjectReference{Kind: "Node", APIVersion: "v1", Name: key.Name, UID: node.uid},
		corev1.EventSource{Component: "node-controller"}, corev1.EventTypeNormal, reason, "Node "+key.Name+" event: "+message, n.clock.Now())
	n.events.mu.Lock()
	defer n.events.mu.Unlock()
	n.events.pending[key.Name] = append(n.events.pending[key.Name], event)
}

// sendEvents records the pending events of a node.
func (n *nodeLifecycle) sendEvents(ctx context.Context, node string) {
	n.events.mu.Lock()
	waiting := n.events.pending[node]
	delete(n.events.pending, node)
	n.events.mu.Unlock()
	for _, event := range waiting {
		WriteEvent(ctx, n.events.events, registry.ControllerManager, event, n.logger)
	}
}
