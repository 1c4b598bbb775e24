package framework

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// RunPreScore calls every PreScore plugin.
func (p *Profile) RunPreScore(ctx context.Context, state *CycleState, pod *PodInfo, nodes []*NodeInfo) *Status {
	for _, plugin := range p.PreScore {
		status := state.observe(plugin, "PreScore", func() *Status { return plugin.PreScore(ctx, state, pod, nodes) })
		if status.IsSkip() {
			state.skipScore(plugin.Name())
		} else if !status.IsSuccess() {
			return status.running("PreScore", plugin)
		}
	}
	return nil
}

// ActiveScores are the Score plugins that did not skip the pod.
func (p *Profile) ActiveScores(state *CycleState) []WeightedScore {
	active := make([]WeightedScore, 0, len(p.Score))
	for _, plugin := range p.Score {
		if skipped := state.skips(plugin.Name()); skipped == nil || !skipped.score {
			active = append(active, plugin)
		}
	}
	return active
}

// Scores holds the scores of an attempt's nodes. It can be reused for the next
// attempt: in large clusters it is most of the memory that an attempt needs.
type Scores struct {
	// Totals are the weighted sums of all plugins' scores, one for each node.
	Totals []int64
	of     []int64 // one plugin's
}

// cleared returns n zeros, in the memory of scores if there is enough.
func cleared(scores []int64, n int) []int64 {
	scores = slices.Grow(scores[:0], n)[:n]
	clear(scores)
	return scores
}

// Run calls plugins to score nodes.
func (s *Scores) Run(ctx context.Context, plugins []WeightedScore, state *CycleState, pod *PodInfo, nodes []*NodeInfo) *Status {
	s.Totals = cleared(s.Totals, len(nodes))
	return s.RunEach(ctx, plugins, state, pod, nodes, func(plugin WeightedScore, of []int64) {
		for i, score := range of {
			s.Totals[i] += score * plugin.Weight
		}
	})
}

// RunEach passes each plugin's scores to take: one for each node, before the
// plugin's weight. take must not keep them.
func (s *Scores) RunEach(ctx context.Context, plugins []WeightedScore, state *CycleState, pod *PodInfo, nodes []*NodeInfo,
	take func(plugin WeightedScore, scores []int64)) *Status {
	scores := cleared(s.of, len(nodes))
	s.of = scores
	for _, plugin := range plugins {
		if status := scoreNodes(ctx, plugin, state, pod, nodes, scores); !status.IsSuccess() {
			return status
		}
		if normalizer, ok := plugin.Score.(ScoreExtensions); ok {
			status := state.observe(plugin, "ScoreExtensionNormalize", func() *Status { return normalizer.NormalizeScore(ctx, state, pod, scores) })
			if !status.IsSuccess() {
				return status.running("Score", plugin)
			}
		}
		for i, score := range scores {
			if score < MinNodeScore || score > MaxNodeScore {
				return AsError(fmt.Errorf("score plugin %s gave node %s %d, which is not within [%d, %d]",
					plugin.Name(), nodes[i].Name(), score, MinNodeScore, MaxNodeScore))
			}
		}
		take(plugin, scores)
	}
	return nil
}

// scoreNodes calls one plugin for all nodes.
func scoreNodes(ctx context.Context, plugin WeightedScore, state *CycleState, pod *PodInfo, nodes []*NodeInfo, scores []int64) *Status {
	for i, node := range nodes {
		var began time.Time
		if state.Observer != nil {
			began = state.Observer.Now()
		}
		score, status := plugin.Score.Score(ctx, state, pod, node)
		if state.Observer != nil {
			state.Observer.Plugin(plugin.Name(), "Score", status.Code(), began)
		}
		if !status.IsSuccess() {
			return AsError(fmt.Errorf("running Score plugin %q: node %s: %w", plugin.Name(), node.Name(), status.Err()))
		}
		scores[i] = score
	}
	return nil
}
