package housekeeping

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
	"kctl/proto/events"
)

// nodeNews records events about nodes that have come or gone. An earlier leader
// has reported nodes older than nodeStartupGrace.
type nodeNews struct {
	events registry.Resource

	mu      sync.Mutex
	waiting map[string][]*core.Event
}

func (n *nodes) notice(key facts.Key, old, now *nodeFacts) {
	same := old != nil && now != nil && old.uid == now.uid
	if old != nil && !same {
		n.news(key, old, "RemovingNode", "Removing Node "+key.Name+" from Controller")
	}
	if now != nil && !same && n.clock.Since(now.created.Time) < nodeStartupGrace {
		n.news(key, now, "RegisteredNode", "Registered Node "+key.Name+" in Controller")
	}
}

func (n *nodes) news(key facts.Key, node *nodeFacts, reason, message string) {
	event := events.New(&core.ObjectReference{Kind: "Node", APIVersion: "v1", Name: key.Name, UID: node.uid},
		corev1.EventSource{Component: "node-controller"}, corev1.EventTypeNormal, reason, "Node "+key.Name+" event: "+message, n.clock.Now())
	n.told.mu.Lock()
	defer n.told.mu.Unlock()
	n.told.waiting[key.Name] = append(n.told.waiting[key.Name], event)
}

// tell records the pending events of a node.
func (n *nodes) tell(ctx context.Context, node string) {
	n.told.mu.Lock()
	waiting := n.told.waiting[node]
	delete(n.told.waiting, node)
	n.told.mu.Unlock()
	for _, event := range waiting {
		WriteEvent(ctx, n.told.events, event, n.logger)
	}
}
