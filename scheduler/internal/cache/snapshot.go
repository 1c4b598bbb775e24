package cache

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Snapshot is the cluster as it was at one moment. One goroutine owns it and
// brings it up to date with Cache.Update; what it returns does not change until
// then.
type Snapshot struct {
	generation int64
	nodeSet    int64
	nodes      []*framework.NodeInfo // ordered by name
	place      map[string]int        // in nodes
	// turns are the same nodes, taking one of each zone in turn, so that a search
	// that ends early has seen all zones. They are in memory in this order,
	// because searches follow it and the processor can prefetch.
	turns []*framework.NodeInfo
	// generations are those of the nodes in turns. To find out whether nodes changed
	// takes eight bytes of each, without touching the rest of their memory.
	generations []int64
	turn        []int // where a node of nodes stands in turns
	// withAffinity are the nodes with pods that have rules about other pods:
	// usually few, and needed in each attempt.
	withAffinity []*framework.NodeInfo
	// avoided are how many nodes have PreferNoSchedule taints.
	avoided    int
	images     *images
	tallies    framework.Tallies
	namespaces int64 // the change of namespaces that tallies go by
}

// NewSnapshot returns an empty snapshot.
func NewSnapshot() *Snapshot { return &Snapshot{place: map[string]int{}} }

// Nodes are all nodes by name; the slice is valid until the next Update.
func (s *Snapshot) Nodes() []*framework.NodeInfo { return s.nodes }

// Turns are all nodes, those of each zone in turn; valid until the next Update.
func (s *Snapshot) Turns() []*framework.NodeInfo { return s.turns }

// Generations are those of the nodes in Turns; valid until the next Update.
func (s *Snapshot) Generations() []int64 { return s.generations }

// Image looks up an image by name; nil if no node has it.
func (s *Snapshot) Image(name string) *framework.Image {
	if s.images == nil {
		return nil
	}
	return s.images.get(name)
}

// Show gives the snapshot to an attempt; valid until the next Update.
func (s *Snapshot) Show(state *framework.CycleState) {
	state.Nodes, state.WithAffinity, state.Image, state.Tallies = s.nodes, s.withAffinity, s.Image, &s.tallies
	state.NoPreferNoSchedule = s.avoided == 0
}

func (s *Snapshot) collectWithAffinity() {
	s.withAffinity = s.withAffinity[:0]
	for _, n := range s.nodes {
		if len(n.WithAffinity) > 0 {
			s.withAffinity = append(s.withAffinity, n)
		}
	}
}

func (s *Snapshot) countAvoided(node *framework.NodeInfo, by int) {
	if node.PrefersNoSchedule() {
		s.avoided += by
	}
}

// Node is the node of that name.
func (s *Snapshot) Node(name string) (*framework.NodeInfo, bool) {
	i, ok := s.place[name]
	if !ok {
		return nil, false
	}
	return s.nodes[i], true
}

// Update brings s up to date. It copies only the nodes that changed since the
// last time: they are at the head of the cache's list.
func (c *Cache) Update(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.images = &c.images
	if s.namespaces != c.namespaces {
		s.namespaces = c.namespaces
		s.tallies.Reset()
	}
	if s.nodeSet != c.nodeSet {
		c.rebuild(s)
		return
	}
	affinity := false
	for e := c.byChange.Front(); e != nil && e.Value.(*node).info.Generation > s.generation; e = e.Next() {
		entry := e.Value.(*node)
		if entry.info.Node == nil {
			continue
		}
		place := s.place[entry.info.Node.Name]
		node := s.nodes[place]
		affinity = affinity || len(node.WithAffinity) > 0 || len(entry.info.WithAffinity) > 0
		s.countAvoided(node, -1)
		s.tallies.Replace(node, &entry.info)
		s.countAvoided(node, 1)
		s.generations[s.turn[place]] = node.Generation
	}
	s.generation = c.generation
	if affinity {
		s.collectWithAffinity()
	}
}

func (c *Cache) rebuild(s *Snapshot) {
	var entries []*node
	for _, entry := range c.nodes {
		if entry.info.Node != nil {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b *node) int { return strings.Compare(a.info.Node.Name, b.info.Node.Name) })
	all := make([]framework.NodeInfo, len(entries))
	s.turns, s.nodes = make([]*framework.NodeInfo, len(all)), make([]*framework.NodeInfo, len(all))
	s.generations, s.turn = make([]int64, len(all)), make([]int, len(all))
	clear(s.place)
	s.avoided = 0
	for turn, i := range takeTurns(entries) {
		entry, node := entries[i], &all[turn]
		entry.info.CopyTo(node)
		s.turns[turn], s.nodes[i], s.place[node.Node.Name] = node, node, i
		s.generations[turn], s.turn[i] = node.Generation, turn
		s.countAvoided(node, 1)
	}
	s.nodeSet, s.generation = c.nodeSet, c.generation
	s.tallies.Reset()
	s.collectWithAffinity()
}

// takeTurns goes through the zones, in the order of their first nodes, and takes
// one node of each as long as it has any.
func takeTurns(nodes []*node) (turns []int) {
	byZone := map[string][]int{}
	var zones []string
	for i, n := range nodes {
		zone := zoneOf(n.info.Node)
		if byZone[zone] == nil {
			zones = append(zones, zone)
		}
		byZone[zone] = append(byZone[zone], i)
	}
	for round := 0; len(turns) < len(nodes); round++ {
		for _, zone := range zones {
			if round < len(byZone[zone]) {
				turns = append(turns, byZone[zone][round])
			}
		}
	}
	return turns
}

// zoneOf is a node's region and zone.
func zoneOf(node *core.Node) string {
	return node.Labels[corev1.LabelTopologyRegion] + "/" + node.Labels[corev1.LabelTopologyZone]
}
