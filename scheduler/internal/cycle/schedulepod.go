package cycle

import (
	"context"
	"math/rand/v2"

	"go.uber.org/zap"

	"kctl/proto/daemon"
	"kctl/proto/relay"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/nominator"
)

const (
	// minFeasibleNodesToFind is how many feasible nodes are always searched for, if there
	// are that many nodes.
	minFeasibleNodesToFind = 100
	// minFeasibleNodesPercentage and the slope of the adaptive percentage are upstream's.
	minFeasibleNodesPercentage = 5
	basePercentage             = 50
	nodesPerPercentLess        = 125
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
	useCache    bool
	scores      framework.Scores
	filterCache signatureCache[*framework.Status]
	scoreCache  scoreCache
	random      func(n int) int
	nominator   *nominator.Nominator
	// extenders are asked after the plugins.
	extenders *extender.Chain
	// points measures extension points.
	points *points
	logger *zap.Logger
}

// stampFunc notes a moment of the pod's way.
type stampFunc func(hop relay.Hop)

func newPlacer(nominated *nominator.Nominator, extenders *extender.Chain, points *points, logger *zap.Logger) *placer {
	return &placer{
		snapshot: cache.NewSnapshot(), random: rand.IntN, nominator: nominated, extenders: extenders, points: points, logger: logger,
	}
}

// ScheduleResult is where a pod goes, and how many nodes were looked at for it.
type ScheduleResult struct {
	Node           string
	EvaluatedNodes int
	FeasibleNodes  int
}

// search is the search for a node for one pod.
type search struct {
	profile *framework.Profile
	state   *framework.CycleState
	pod     *framework.PodInfo
	fit     *framework.FitError // why nodes were refused
}

// schedulePod finds the best node. The error is a *framework.FitError or ErrNoNodes
// if there is none, and any other if that could not be determined.
func (p *placer) schedulePod(ctx context.Context, profile *framework.Profile, state *framework.CycleState, pod *framework.PodInfo,
	stamp stampFunc) (ScheduleResult, error) {
	nodes := p.snapshot.Nodes()
	if len(nodes) == 0 {
		return ScheduleResult{}, framework.ErrNoNodes
	}
	p.snapshot.Show(state)
	s := &search{profile: profile, state: state, pod: pod, fit: framework.NewFitError(len(nodes))}
	outcome, err := p.preFilter(ctx, s)
	if err != nil {
		return ScheduleResult{}, err
	}
	candidates := p.nodesAfterPreFilter(outcome, nodes, s.fit)
	if p.evaluateNominatedNode(ctx, s, outcome) {
		stamp(relay.SchedulerFiltered)
		stamp(relay.SchedulerScored)
		return ScheduleResult{Node: p.nominator.Of(pod.Pod.UID), EvaluatedNodes: 1, FeasibleNodes: 1}, nil
	}
	evaluated, err := p.findFeasibleNodes(ctx, s, candidates)
	if err != nil {
		return ScheduleResult{}, err
	}
	stamp(relay.SchedulerFiltered)
	if len(p.feasible) == 0 {
		return ScheduleResult{}, s.fit
	}
	best := p.feasible[0]
	if len(p.feasible) > 1 {
		if best, err = p.prioritizeNodes(ctx, s); err != nil {
			return ScheduleResult{}, err
		}
	}
	stamp(relay.SchedulerScored)
	return ScheduleResult{Node: best.Node.Name, EvaluatedNodes: evaluated, FeasibleNodes: len(p.feasible)}, nil
}

// preFilter runs the PreFilter plugins; a rejection is s.fit.
func (p *placer) preFilter(ctx context.Context, s *search) (framework.PreFilterOutcome, error) {
	began := p.points.clock.Now()
	outcome, status := s.profile.RunPreFilter(ctx, s.state, s.pod)
	p.points.observe(s.profile, "PreFilter", status, began)
	asked(p.points, s.profile, "PreFilter", s.profile.PreFilter)
	switch {
	case status.IsRejected():
		s.fit.RefuseAll(status)
		return outcome, s.fit
	case !status.IsSuccess():
		return outcome, status.Err()
	}
	return outcome, nil
}

// nodesAfterPreFilter are the nodes that PreFilter left; the others count as refused.
func (p *placer) nodesAfterPreFilter(outcome framework.PreFilterOutcome, nodes []*framework.NodeInfo,
	fit *framework.FitError) []*framework.NodeInfo {
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

// evaluateNominatedNode reports whether the pod fits on its nominated node: other pods
// left that node for it, so no other is looked at. If an extender fails to say, all are.
func (p *placer) evaluateNominatedNode(ctx context.Context, s *search, outcome framework.PreFilterOutcome) bool {
	name := p.nominator.Of(s.pod.Pod.UID)
	if name == "" {
		return false
	}
	node, known := p.snapshot.Node(name)
	if !known || outcome.LeavesOut(name) || !p.newNodeFilter(s, s.profile.ActiveFilters(s.state)).run(ctx, node, 0).IsSuccess() {
		return false
	}
	left, err := p.extenders.Filter(ctx, s.pod.Pod, []*framework.NodeInfo{node}, func(*framework.NodeInfo, *framework.Status) {})
	if err != nil {
		p.logger.Warn("an extender does not say whether the nominated node fits; looking at all nodes",
			daemon.PodFields(s.pod.Pod), zap.String("node", name), zap.Error(err))
	}
	return len(left) > 0
}

// nodeFilter runs Filter plugins for one pod.
type nodeFilter struct {
	search
	filters   []framework.Filter
	nominator *nominator.Nominator
	// cached is what the filters said for pods that are alike, by place, about
	// nodes of these generations; nil for nothing.
	cached      []cachedAnswer[*framework.Status]
	generations []int64
}

func (p *placer) newNodeFilter(s *search, filters []framework.Filter) *nodeFilter {
	return &nodeFilter{search: *s, filters: filters, nominator: p.nominator}
}

// run asks about a node, counting the pods nominated to it that come before
// this one.
func (f *nodeFilter) run(ctx context.Context, node *framework.NodeInfo, place int) *framework.Status {
	others := f.nominator.Before(f.pod, node)
	if f.cached == nil || len(others) > 0 {
		return f.profile.RunFiltersWithNominatedPods(ctx, others, f.filters, f.state, f.pod, node)
	}
	cached, generation := &f.cached[place], f.generations[place]
	if cached.generation == generation {
		return cached.value
	}
	status := framework.RunFilters(ctx, f.filters, f.state, f.pod, node)
	if status.IsSuccess() || status.IsRejected() {
		*cached = cachedAnswer[*framework.Status]{generation, status}
	}
	return status
}

// findFeasibleNodes sets p.feasible to nodes that plugins and extenders accept.
func (p *placer) findFeasibleNodes(ctx context.Context, s *search, nodes []*framework.NodeInfo) (evaluated int, err error) {
	began := p.points.clock.Now()
	if evaluated, err = p.findNodesThatPassFilters(ctx, s, nodes); err == nil && len(nodes) > 0 {
		p.feasible, err = p.extenders.Filter(ctx, s.pod.Pod, p.gather(nodes), s.fit.RefuseNode)
	}
	p.points.observe(s.profile, "Filter", framework.AsError(err), began)
	return evaluated, err
}

// findNodesThatPassFilters collects the places of feasible nodes until there are enough
// of them to score.
func (p *placer) findNodesThatPassFilters(ctx context.Context, s *search, nodes []*framework.NodeInfo) (evaluated int, err error) {
	p.feasible, p.places = nil, p.places[:0]
	if len(nodes) == 0 {
		return 0, nil
	}
	filters := s.profile.ActiveFilters(s.state)
	asked(p.points, s.profile, "Filter", filters)
	enough := numFeasibleNodesToFind(len(nodes), s.profile.PercentageOfNodesToScore)
	next := p.start % len(nodes)
	filter := p.newNodeFilter(s, filters)
	if p.useCache = p.mayUseCache(s.state, nodes); p.useCache {
		filter.cached = lookup(&p.filterCache, s.profile, filters, s.pod, len(nodes))
		filter.generations = p.snapshot.Generations()
	}
	for evaluated < len(nodes) && len(p.places) < enough {
		place, node := next, nodes[next]
		evaluated++
		if next++; next == len(nodes) {
			next = 0
		}
		status := filter.run(ctx, node, place)
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
	return evaluated, nil
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

// mayUseCache reports whether answers for other pods may be used in this attempt. They may
// not if plugins are measured, if nodes are not in the places by which answers are
// remembered, or if extenders remove nodes.
func (p *placer) mayUseCache(state *framework.CycleState, nodes []*framework.NodeInfo) bool {
	turns := p.snapshot.Turns()
	return state.Observer == nil && p.extenders.Empty() && len(nodes) == len(turns) && &nodes[0] == &turns[0]
}

// numFeasibleNodesToFind is how many feasible nodes end the search. percentage 0 means
// that it falls from 50 as the cluster grows.
func numFeasibleNodesToFind(nodes int, percentage int32) int {
	if nodes < minFeasibleNodesToFind {
		return nodes
	}
	share := int(percentage)
	if share == 0 {
		share = max(basePercentage-nodes/nodesPerPercentLess, minFeasibleNodesPercentage)
	}
	return min(max(nodes*share/100, minFeasibleNodesToFind), nodes)
}
