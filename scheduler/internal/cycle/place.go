package cycle

import (
	"context"
	"math/rand/v2"

	"kctl/proto/relay"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/nominate"
)

const (
	// minFeasible is how many feasible nodes are always searched for, if there are that many
	// nodes.
	minFeasible = 100
	// minPercentage and the slope of the adaptive percentage are upstream's.
	minPercentage       = 5
	basePercentage      = 50
	nodesPerPercentLess = 125
)

// placer decides for one pod after another on one snapshot. The cycle's
// goroutine owns it.
type placer struct {
	snapshot *cache.Snapshot
	// start is where the search begins; it moves, so that in clusters too large to
	// look at every node, each node gets its turn.
	start    int
	feasible []*framework.NodeInfo
	// gathered is memory for feasible nodes that are not adjacent.
	gathered []*framework.NodeInfo
	// places are the positions of the feasible nodes among those that were searched.
	places      []int
	remembering bool
	scores      framework.Scores
	verdicts    memory[*framework.Status]
	worth       worth
	random      func(n int) int
	nominations *nominate.Nominations
	// extenders are asked after the plugins.
	extenders *extender.Chain
	// points measures extension points.
	points *points
}

// stampFunc notes a moment of the pod's way.
type stampFunc func(hop relay.Hop)

func newPlacer(nominations *nominate.Nominations, extenders *extender.Chain, points *points) *placer {
	return &placer{snapshot: cache.NewSnapshot(), random: rand.IntN, nominations: nominations, extenders: extenders, points: points}
}

// Placement is where a pod goes, and how many nodes were looked at for it.
type Placement struct {
	Node      string
	Evaluated int
	Feasible  int
}

// search is the search for a node for one pod.
type search struct {
	profile *framework.Profile
	state   *framework.CycleState
	pod     *framework.PodInfo
	fit     *framework.FitError // why nodes were refused
}

// place finds the best node. The error is a *framework.FitError or ErrNoNodes
// if there is none, and any other if that could not be determined.
func (p *placer) place(ctx context.Context, profile *framework.Profile, state *framework.CycleState, pod *framework.PodInfo, stamp stampFunc) (Placement, error) {
	nodes := p.snapshot.Nodes()
	if len(nodes) == 0 {
		return Placement{}, framework.ErrNoNodes
	}
	p.snapshot.Show(state)
	s := &search{profile: profile, state: state, pod: pod, fit: framework.NewFitError(len(nodes))}
	began := p.points.clock.Now()
	outcome, status := profile.RunPreFilter(ctx, state, pod)
	p.points.observe(profile, "PreFilter", status, began)
	asked(p.points, profile, "PreFilter", profile.PreFilter)
	if status.IsRejected() {
		s.fit.RefuseAll(status)
		return Placement{}, s.fit
	}
	if !status.IsSuccess() {
		return Placement{}, status.Err()
	}
	candidates := p.candidates(outcome, nodes, s.fit)
	if fits, err := p.fitsNominated(ctx, s, outcome); err != nil {
		return Placement{}, err
	} else if fits {
		stamp(relay.SchedulerFiltered)
		stamp(relay.SchedulerScored)
		return Placement{Node: p.nominations.Of(pod.Pod.UID), Evaluated: 1, Feasible: 1}, nil
	}
	began = p.points.clock.Now()
	evaluated, err := p.filter(ctx, s, candidates)
	if err != nil {
		p.points.observe(profile, "Filter", framework.AsError(err), began)
		return Placement{}, err
	}
	p.points.observe(profile, "Filter", nil, began)
	stamp(relay.SchedulerFiltered)
	if len(p.feasible) == 0 {
		return Placement{}, s.fit
	}
	best := p.feasible[0]
	if len(p.feasible) > 1 {
		if best, err = p.score(ctx, s); err != nil {
			return Placement{}, err
		}
	}
	stamp(relay.SchedulerScored)
	return Placement{Node: best.Node.Name, Evaluated: evaluated, Feasible: len(p.feasible)}, nil
}

// candidates are the nodes that PreFilter left; the others count as refused.
func (p *placer) candidates(outcome framework.PreFilterOutcome, nodes []*framework.NodeInfo, fit *framework.FitError) []*framework.NodeInfo {
	if outcome.NodeNames == nil {
		return p.snapshot.Turns()
	}
	named := make([]*framework.NodeInfo, 0, len(outcome.NodeNames))
	for name := range outcome.NodeNames {
		if node, ok := p.snapshot.Node(name); ok {
			named = append(named, node)
		}
	}
	if others := len(nodes) - len(named); others > 0 {
		for _, plugin := range outcome.Narrowed {
			fit.Plugins[plugin] = struct{}{}
		}
		fit.Refuse(outcome.LeftOut(), others)
	}
	return named
}

// fitsNominated reports whether the pod fits on its nominated node: other pods
// left that node for it, so no other is looked at.
func (p *placer) fitsNominated(ctx context.Context, s *search, outcome framework.PreFilterOutcome) (bool, error) {
	name := p.nominations.Of(s.pod.Pod.UID)
	if name == "" {
		return false, nil
	}
	node, known := p.snapshot.Node(name)
	if !known || outcome.LeavesOut(name) || !p.inquire(s, s.profile.ActiveFilters(s.state)).ask(ctx, node, 0).IsSuccess() {
		return false, nil
	}
	left, err := p.extenders.Filter(ctx, s.pod.Pod, []*framework.NodeInfo{node}, func(*framework.NodeInfo, *framework.Status) {})
	return len(left) > 0, err
}

// inquiry asks filters for one pod.
type inquiry struct {
	search
	filters     []framework.Filter
	nominations *nominate.Nominations
	// known is what the filters said for pods that are alike, by place, about
	// nodes of these generations; nil for nothing.
	known       []answer[*framework.Status]
	generations []int64
}

func (p *placer) inquire(s *search, filters []framework.Filter) *inquiry {
	return &inquiry{search: *s, filters: filters, nominations: p.nominations}
}

// ask asks about a node, counting the pods nominated to it that come before
// this one.
func (q *inquiry) ask(ctx context.Context, node *framework.NodeInfo, place int) *framework.Status {
	others := q.nominations.Before(q.pod, node)
	if q.known == nil || len(others) > 0 {
		return q.profile.RunFiltersWith(ctx, others, q.filters, q.state, q.pod, node)
	}
	known, generation := &q.known[place], q.generations[place]
	if known.generation == generation {
		return known.said
	}
	status := framework.RunFilters(ctx, q.filters, q.state, q.pod, node)
	if status.IsSuccess() || status.IsRejected() {
		*known = answer[*framework.Status]{generation, status}
	}
	return status
}

// filter collects feasible nodes until there are enough of them to score.
func (p *placer) filter(ctx context.Context, s *search, nodes []*framework.NodeInfo) (evaluated int, err error) {
	p.feasible, p.places = nil, p.places[:0]
	if len(nodes) == 0 {
		return 0, nil
	}
	filters := s.profile.ActiveFilters(s.state)
	asked(p.points, s.profile, "Filter", filters)
	enough := enoughNodes(len(nodes), s.profile.PercentageOfNodesToScore)
	next := p.start % len(nodes)
	inquiry := p.inquire(s, filters)
	if p.remembering = p.recalls(s.state, nodes); p.remembering {
		inquiry.known = recall(&p.verdicts, s.profile, filters, s.pod, len(nodes))
		inquiry.generations = p.snapshot.Generations()
	}
	for evaluated < len(nodes) && len(p.places) < enough {
		place, node := next, nodes[next]
		evaluated++
		if next++; next == len(nodes) {
			next = 0
		}
		status := inquiry.ask(ctx, node, place)
		switch {
		case status.IsSuccess():
			p.places = append(p.places, place)
		case status.IsRejected():
			s.fit.RefuseNode(node, status)
		default:
			return evaluated, status.Err()
		}
	}
	p.start = next
	p.feasible, err = p.extenders.Filter(ctx, s.pod.Pod, p.gather(nodes), s.fit.RefuseNode)
	return evaluated, err
}

// gather returns the nodes at p.places. Usually all nodes that were looked at are
// feasible; then it copies nothing, because writing pointers is expensive during
// garbage collection.
func (p *placer) gather(nodes []*framework.NodeInfo) []*framework.NodeInfo {
	if n := len(p.places); n > 0 && p.places[n-1]-p.places[0] == n-1 {
		first := p.places[0]
		return nodes[first : first+n : first+n]
	}
	p.gathered = p.gathered[:0]
	for _, place := range p.places {
		p.gathered = append(p.gathered, nodes[place])
	}
	return p.gathered
}

// recalls reports whether answers for other pods may be used in this attempt. They may
// not if plugins are measured, if nodes are not in the places by which answers are
// remembered, or if extenders remove nodes.
func (p *placer) recalls(state *framework.CycleState, nodes []*framework.NodeInfo) bool {
	turns := p.snapshot.Turns()
	return state.Observer == nil && p.extenders.Empty() && len(nodes) == len(turns) && &nodes[0] == &turns[0]
}

// enoughNodes is how many feasible nodes end the search. percentage 0 means
// that it falls from 50 as the cluster grows.
func enoughNodes(nodes int, percentage int32) int {
	if nodes < minFeasible {
		return nodes
	}
	share := int(percentage)
	if share == 0 {
		share = max(basePercentage-nodes/nodesPerPercentLess, minPercentage)
	}
	return min(max(nodes*share/100, minFeasible), nodes)
}
