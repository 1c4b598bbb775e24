package cycle

import (
	"context"

	"kctl/scheduler/framework"
)

// scoreCache has the scores of nodes for pods that are alike.
type scoreCache struct {
	cache signatureCache[int64]
	// signing are this attempt's plugins whose scores hold for all pods that are
	// alike, and signers the same plugins without weights; others must be asked for
	// each pod.
	signing, others []framework.WeightedScore
	signers         []framework.Score
	// missing are the feasible nodes that must be asked about, with their positions
	// among the feasible ones.
	missing []*framework.NodeInfo
	at      []int
	scores  framework.Scores
}

// prioritizeNodes scores the feasible nodes and returns the best; among equals, any.
func (p *placer) prioritizeNodes(ctx context.Context, s *search) (*framework.NodeInfo, error) {
	began := p.points.clock.Now()
	status := s.profile.RunPreScore(ctx, s.state, s.pod, p.feasible)
	p.points.observe(s.profile, "PreScore", status, began)
	asked(p.points, s.profile, "PreScore", s.profile.PreScore)
	active := s.profile.ActiveScores(s.state)
	asked(p.points, s.profile, "Score", active)
	if !status.IsSuccess() {
		return nil, status.Err()
	}
	began = p.points.clock.Now()
	status = p.runScore(ctx, s, active)
	p.points.observe(s.profile, "Score", status, began)
	if !status.IsSuccess() {
		return nil, status.Err()
	}
	totals := p.scores.Totals
	p.extenders.Prioritize(ctx, s.pod.Pod, p.feasible, func(extended map[string]int64, weight int64) {
		for i, node := range p.feasible {
			totals[i] += extended[node.Name()] * weight
		}
	})
	return p.feasible[p.selectHost(totals)], nil
}

// runScore calls plugins to score the feasible nodes; plugins that sign pods are
// called only for nodes that they have not scored for a pod that is alike.
func (p *placer) runScore(ctx context.Context, s *search, plugins []framework.WeightedScore) *framework.Status {
	if !p.useCache {
		return p.scores.Run(ctx, plugins, s.state, s.pod, p.feasible)
	}
	c := &p.scoreCache
	c.split(plugins)
	if status := p.scores.Run(ctx, c.others, s.state, s.pod, p.feasible); !status.IsSuccess() {
		return status
	}
	cached, generations := lookup(&c.cache, s.profile, c.signers, s.pod, len(p.snapshot.Turns())), p.snapshot.Generations()
	c.missing, c.at = c.missing[:0], c.at[:0]
	for i, node := range p.feasible {
		if score := &cached[p.places[i]]; score.generation == generations[p.places[i]] {
			p.scores.Totals[i] += score.value
		} else {
			c.missing, c.at = append(c.missing, node), append(c.at, i)
		}
	}
	defer func() { clear(c.missing) }() // the next attempt may have fewer, and must not keep these nodes alive
	status := c.scores.Run(ctx, c.signing, s.state, s.pod, c.missing)
	if !status.IsSuccess() {
		return status
	}
	for i, score := range c.scores.Totals {
		at := c.at[i]
		p.scores.Totals[at] += score
		cached[p.places[at]] = cachedAnswer[int64]{c.missing[i].Generation, score}
	}
	return status
}

// split separates the plugins that sign pods from the others, in reused memory.
func (c *scoreCache) split(plugins []framework.WeightedScore) {
	c.signing, c.signers, c.others = c.signing[:0], c.signers[:0], c.others[:0]
	for _, plugin := range plugins {
		_, signs := plugin.Score.(framework.Sign)
		_, normalizes := plugin.Score.(framework.ScoreExtensions)
		if signs && !normalizes {
			c.signing, c.signers = append(c.signing, plugin), append(c.signers, plugin.Score)
		} else {
			c.others = append(c.others, plugin)
		}
	}
}

// selectHost is the index of the highest score; among equals, of any of them.
func (p *placer) selectHost(scores []int64) int {
	best, equals := scores[0], 0
	for _, score := range scores {
		switch {
		case score > best:
			best, equals = score, 1
		case score == best:
			equals++
		}
	}
	for i, which := 0, p.random(equals); ; i++ {
		if scores[i] != best {
			continue
		}
		if which == 0 {
			return i
		}
		which--
	}
}
