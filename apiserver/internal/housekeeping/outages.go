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
	// outageWait is how long a node is not ready before it is given up, since others
	// may be falling silent with it. Upstream looks at all nodes that often.
	outageWait = 5 * time.Second
	// giveUpEvery is how often one node of a zone may be given up; slowlyEvery is the
	// same for a large zone that is mostly not ready.
	giveUpEvery = 10 * time.Second
	slowlyEvery = 100 * time.Second
	// largeZone is the number of nodes from which a zone goes on slowly; smaller ones
	// give up no more nodes.
	largeZone = 50
	// partly is the share of a zone's nodes that counts as most of it, if it is more than
	// aFew.
	partly = 0.55
	aFew   = 2
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

	mu    sync.Mutex
	nodes map[string]nodeHealth // of those that have reported
	zones map[string]*zoneHealth
	sick  int
}

type nodeHealth struct {
	zone  string
	ready bool
	since time.Time
}

type zoneHealth struct {
	nodes, sick int
	next        time.Time // when another node may be given up
}

func newOutages(clock clock.PassiveClock) *outages {
	return &outages{clock: clock, nodes: map[string]nodeHealth{}, zones: map[string]*zoneHealth{}}
}

// note records the state of a node; nil means that it is gone. It reports whether this
// changes how all nodes are treated.
func (o *outages) note(name string, node *nodeFacts) (turned bool) {
	if node == nil {
		return o.set(name, nil)
	}
	ready, reported := node.conditions[corev1.NodeReady]
	if !reported {
		return o.set(name, nil)
	}
	return o.set(name, &nodeHealth{zone: node.zone, ready: ready == corev1.ConditionTrue})
}

func (o *outages) set(name string, now *nodeHealth) (turned bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.all()
	old, known := o.nodes[name]
	if known {
		o.count(old, -1)
		delete(o.nodes, name)
	}
	if now != nil {
		if now.since = o.clock.Now(); known && old.ready == now.ready {
			now.since = old.since
		}
		o.nodes[name] = *now
		o.count(*now, 1)
	}
	return before != o.all()
}

func (o *outages) count(node nodeHealth, by int) {
	zone := o.zones[node.zone]
	if zone == nil {
		zone = &zoneHealth{}
		o.zones[node.zone] = zone
	}
	zone.nodes += by
	if !node.ready {
		zone.sick += by
		o.sick += by
	}
	if zone.nodes == 0 {
		delete(o.zones, node.zone)
	}
}

func (o *outages) all() bool { return o.sick > 0 && o.sick == len(o.nodes) }

// everywhere reports whether no node is ready.
func (o *outages) everywhere() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all()
}

// names are those of all nodes that have reported.
func (o *outages) names() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.nodes {
		names = append(names, name)
	}
	return names
}

// giveUp reports whether a node that is not ready may have its pods evicted, after which
// no other of its zone may for a while; if not, it returns when to ask again (0: when a
// node is ready).
func (o *outages) giveUp(name string) (again time.Duration, may bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	node, known := o.nodes[name]
	if !known || o.all() {
		return 0, false
	}
	now, zone := o.clock.Now(), o.zones[node.zone]
	every := zone.pace()
	if every == 0 {
		return outageWait, false
	}
	if wait := max(node.since.Add(outageWait).Sub(now), zone.next.Sub(now)); wait > 0 {
		return wait, false
	}
	zone.next = now.Add(every)
	return 0, true
}

// pace is how often a node of the zone may be given up; 0 means never.
func (z *zoneHealth) pace() time.Duration {
	switch most := z.sick > aFew && float64(z.sick) >= partly*float64(z.nodes); {
	case !most || z.sick == z.nodes:
		return giveUpEvery
	case z.nodes > largeZone:
		return slowlyEvery
	}
	return 0
}
