package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/queue"
)

// Explanation is what is known about a pod's placement.
type Explanation struct {
	Pod       string `json:"pod"`
	Scheduler string `json:"schedulerName"`
	// Node is the node that the pod is on. The nodes answer as if it were not.
	Node string `json:"node,omitempty"`
	// Nominated is the node on which others make room for it.
	Nominated string `json:"nominatedNode,omitempty"`
	// Queue is where it waits; RejectedBy are the plugins that refused it last.
	Queue      string   `json:"queue,omitempty"`
	RejectedBy []string `json:"rejectedBy,omitempty"`
	// Message sums up why no node takes the pod, in the words of its event.
	Message string `json:"message,omitempty"`
	// Nodes are those that take the pod, the best first, and then the others.
	Nodes []Node `json:"nodes"`
}

// Node is one node's answer.
type Node struct {
	Name     string    `json:"name"`
	Total    int64     `json:"total"`
	Scores   []Score   `json:"scores,omitempty"`
	Refusals []Refusal `json:"refusals,omitempty"`
	// Lacks are the resources that the node has too little of, with amounts. Room kept
	// for others (nominations) does not count as used.
	Lacks []Lack `json:"lacks,omitempty"`
	// Taints are those that the pod does not tolerate; reasons don't name them.
	Taints []string `json:"taints,omitempty"`
}

// Score is what a plugin gives the node, before its weight.
type Score struct {
	Plugin string `json:"plugin"`
	Score  int64  `json:"score"`
	Weight int64  `json:"weight"`
}

// Refusal is why a plugin refuses the node.
type Refusal struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

// PodReader reads a pod from the API.
type PodReader interface {
	Pod(ctx context.Context, namespace, name string) (*core.Pod, error)
}

// Explainer is safe for concurrent use.
type Explainer struct {
	Profiles  map[string]*framework.Profile
	Cache     *cache.Cache
	Queue     *queue.Queue
	Nominator *nominator.Nominator
	Pods      PodReader
	Extenders *extender.Chain // may be nil

	one sync.Mutex // a snapshot is large: there is one at a time
}

// ForeignError says that a pod is not this scheduler's.
type ForeignError struct{ Pod, Scheduler string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("pod %s is for the scheduler %q, which is not a profile of this one", e.Pod, e.Scheduler)
}

// Explain asks all nodes.
func (e *Explainer) Explain(ctx context.Context, namespace, name string) (*Explanation, error) {
	pod, err := e.Pods.Pod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	info := framework.NewPodInfo(pod)
	profile, ours := e.Profiles[pod.Spec.SchedulerName]
	if !ours {
		return nil, &ForeignError{info.Key(), pod.Spec.SchedulerName}
	}
	e.one.Lock()
	defer e.one.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err // the client has gone
	}
	result := &Explanation{
		Pod: info.Key(), Scheduler: pod.Spec.SchedulerName, Node: pod.Spec.NodeName, Nominated: e.Nominator.Of(pod.UID),
	}
	result.Queue, result.RejectedBy = e.Queue.Where(pod.UID)
	if result.Node != "" {
		anywhere := *pod
		anywhere.Spec.NodeName = ""
		info = framework.NewPodInfo(&anywhere)
	}
	q := &question{profile: profile, pod: info, nominator: e.Nominator, extenders: e.Extenders, result: result}
	q.look(e.Cache)
	return result, q.ask(ctx)
}

// question is one Explain under way.
type question struct {
	profile   *framework.Profile
	pod       *framework.PodInfo
	nominator *nominator.Nominator
	extenders *extender.Chain
	state     *framework.CycleState
	fit       *framework.FitError
	result    *Explanation
}

// look takes a snapshot in which the pod is nowhere.
func (q *question) look(from *cache.Cache) {
	snapshot := cache.NewSnapshot()
	from.Update(snapshot)
	q.state = framework.NewCycleState(nil)
	snapshot.Show(q.state)
	is := func(p *framework.PodInfo) bool { return p.Pod.UID == q.pod.Pod.UID }
	for _, node := range q.state.Nodes {
		if slices.ContainsFunc(node.Pods, is) {
			node.RemovePod(q.pod.Pod.UID) // nobody else uses the snapshot
		}
	}
}

func (q *question) ask(ctx context.Context) error {
	q.fit = framework.NewFitError(len(q.state.Nodes))
	outcome, status := q.profile.RunPreFilter(ctx, q.state, q.pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return status.Err()
	}
	var feasible []*framework.NodeInfo
	for _, node := range q.state.Nodes {
		refusals := []*framework.Status{status}
		if status.IsSuccess() {
			var err error
			if refusals, err = q.refusals(ctx, outcome, node); err != nil {
				return err
			}
		}
		if len(refusals) == 0 {
			feasible = append(feasible, node)
			continue
		}
		q.refused(node, refusals)
	}
	feasible, err := q.extenders.Filter(ctx, q.pod.Pod, feasible, func(node *framework.NodeInfo, refusal *framework.Status) {
		q.refused(node, []*framework.Status{refusal})
	})
	if err != nil {
		return err
	}
	if err := q.rank(ctx, feasible); err != nil {
		return err
	}
	switch {
	case len(q.state.Nodes) == 0:
		q.result.Message = framework.ErrNoNodes.Error()
	case len(feasible) > 0:
	default:
		if !status.IsSuccess() {
			q.fit.RefuseAll(status)
		}
		q.result.Message = q.fit.Error()
	}
	return nil
}

// refusals are those of all plugins, where an attempt only hears the first.
func (q *question) refusals(ctx context.Context, outcome framework.PreFilterOutcome,
	node *framework.NodeInfo) ([]*framework.Status, error) {
	var refusals []*framework.Status
	if outcome.LeavesOut(node.Name()) {
		refusals = append(refusals, outcome.LeftOut())
	}
	others := q.nominator.Before(q.pod, node)
	for _, filter := range q.profile.ActiveFilters(q.state) {
		status := q.profile.RunFiltersWithNominatedPods(ctx, others, []framework.Filter{filter}, q.state, q.pod, node)
		switch {
		case status.IsRejected():
			refusals = append(refusals, status)
		case !status.IsSuccess():
			return nil, status.Err()
		}
	}
	return refusals, nil
}

func (q *question) refused(node *framework.NodeInfo, refusals []*framework.Status) {
	q.fit.Refuse(refusals[0], 1)
	answer := Node{Name: node.Name(), Lacks: lacks(&q.pod.Requests, node), Taints: untolerated(q.pod.Pod, node)}
	for _, r := range refusals {
		answer.Refusals = append(answer.Refusals, Refusal{Plugin: r.Plugin(), Code: r.Code().String(), Reasons: r.Reasons()})
	}
	q.result.Nodes = append(q.result.Nodes, answer)
}

// rank puts the nodes that take the pod before the others, the best first.
func (q *question) rank(ctx context.Context, feasible []*framework.NodeInfo) error {
	if len(feasible) == 0 {
		return nil
	}
	ranked := make([]Node, len(feasible))
	for i, node := range feasible {
		ranked[i].Name = node.Name()
	}
	status := q.profile.RunPreScore(ctx, q.state, q.pod, feasible)
	if status.IsSuccess() {
		status = new(framework.Scores).RunEach(ctx, q.profile.ActiveScores(q.state), q.state, q.pod, feasible,
			func(plugin framework.WeightedScore, scores []int64) {
				for i, score := range scores {
					ranked[i].Scores = append(ranked[i].Scores, Score{Plugin: plugin.Name(), Score: score, Weight: plugin.Weight})
					ranked[i].Total += score * plugin.Weight
				}
			})
	}
	if !status.IsSuccess() {
		return status.Err()
	}
	q.extenders.Prioritize(ctx, q.pod.Pod, feasible, func(scores map[string]int64, weight int64) {
		for i, node := range feasible {
			score := scores[node.Name()]
			ranked[i].Scores = append(ranked[i].Scores, Score{Plugin: extender.Name, Score: score, Weight: weight})
			ranked[i].Total += score * weight
		}
	})
	slices.SortStableFunc(ranked, func(a, b Node) int { return cmp.Compare(b.Total, a.Total) })
	q.result.Nodes = append(ranked, q.result.Nodes...)
	return nil
}
