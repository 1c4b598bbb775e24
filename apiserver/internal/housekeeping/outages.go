package housekeeping

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// How fast nodes are given up; kube-controller-manager's defaults (Kubernetes docs,
// "Nodes", "Rate limits on eviction").
const (
	// outageDelay is how long a node is not ready before it is given up, since others
	// may be falling silent with it. Upstream looks at all nodes that often.
	outageDelay = 5 * time.Second
	// evictionPeriod is how often one node of a zone may be given up; reducedEvictionPeriod is the
	// same for a large zone that is mostly not ready.
	evictionPeriod        = 10 * time.Second
	reducedEvictionPeriod = 100 * time.Second
	// largeZoneSize is the number of nodes from which a zone goes on slowly; smaller ones
	// give up no more nodes.
	largeZoneSize = 50
	// unhealthyZoneThreshold is the share of a zone's nodes that counts as most of it, if it is more than
	// minUnhealthyNodes.
	unhealthyZoneThreshold = 0.55
	minUnhealthyNodes      = 2
)

// outages knows which nodes are ready, and so whether nodes have failed or a network:
// pods are not evicted from all nodes because none can be heard.
//
//	no node is ready             → none is given up, and those that were are taken back
//	most of a zone is not ready  → none of it is, or, of a large zone, one in 100 s
//	otherwise, or a whole zone   → one in 10 s of each zone
//
// It is safe for concurrent use.
type outages struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	nodes   map[string]nodeHealth // of those that have reported
	zones   map[string]*zoneHealth
	unready int
}

type nodeHealth struct {
	zone  string
	ready bool
	since time.Time
}

type zoneHealth struct {
	nodes, unready int
	next           time.Time // when another node may be given up
}

func newOutages(clock clock.PassiveClock) *outages {
	return &outages{clock: clock, nodes: map[string]nodeHealth{}, zones: map[string]*zoneHealth{}}
}

// record records the state of a node; nil means that it is gone. It reports whether this
// changes how all nodes are treated.
func (o *outages) record(name string, node *nodeState) (turned bool) {
	if node == nil {
		return o.setHealth(name, nil)
	}
	ready, reported := node.conditions[corev1.NodeReady]
	if !reported {
		return o.setHealth(name, nil)
	}
	return o.setHealth(name, &nodeHealth{zone: node.zone, ready: ready == corev1.ConditionTrue})
}

func (o *outages) setHealth(name string, now *nodeHealth) (turned bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.allUnready()
	old, known := o.nodes[name]
	if known {
		o.addToZone(old, -1)
		delete(o.nodes, name)
	}
	if now != nil {
		if now.since = o.clock.Now(); known && old.ready == now.ready {
			now.since = old.since
		}
		o.nodes[name] = *now
		o.addToZone(*now, 1)
	}
	return before != o.allUnready()
}

func (o *outages) addToZone(node nodeHealth, by int) {
	zone := o.zones[node.zone]
	if zone == nil {
		zone = &zoneHealth{}
		o.zones[node.zone] = zone
	}
	zone.nodes += by
	if !node.ready {
		zone.unready += by
		o.unready += by
	}
	if zone.nodes == 0 {
		delete(o.zones, node.zone)
	}
}

func (o *outages) allUnready() bool { return o.unready > 0 && o.unready == len(o.nodes) }

// noneReady reports whether no node is ready.
func (o *outages) noneReady() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.allUnready()
}

// nodeNames are those of all nodes that have reported.
func (o *outages) nodeNames() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.nodes {
		names = append(names, name)
	}
	return names
}

// allowEviction reports whether a node that is not ready may have its pods evicted, after which
// no other of its zone may for a while; if not, it returns when to ask again (0: when a
// node is ready).
func (o *outages) allowEviction(name string) (again time.Duration, may bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	node, known := o.nodes[name]
	if !known || o.allUnready() {
		return 0, false
	}
	now, zone := o.clock.Now(), o.zones[node.zone]
	every := zone.evictionInterval()
	if every == 0 {
		return outageDelay, false
	}
	if wait := max(node.since.Add(outageDelay).Sub(now), zone.next.Sub(now)); wait > 0 {
		return wait, false
	}
	zone.next = now.Add(every)
	return 0, true
}

// evictionInterval is how often a node of the zone may be given up; 0 means never.
func (z *zoneHealth) evictionInterval() time.Duration {
	switch most := z.unready > minUnhealthyNodes && float64(z.unready) >= unhealthyZoneThreshold*float64(z.nodes); {
	case !most || z.unready == z.nodes:
		return evictionPeriod
	case z.nodes > largeZoneSize:
		return reducedEvictionPeriod
	}
	return 0
}
