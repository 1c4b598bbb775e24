package cycle

import (
	"context"

	"kctl/scheduler/framework"
)

// worth remembers the scores of nodes for pods that are alike.
type worth struct {
	known memory[int64]
	// signing are this attempt's plugins whose scores hold for all pods that are
	// alike, and signers the same plugins without weights; others must be asked for
	// each pod.
	signing, others []framework.WeightedScore
	signers         []framework.Score
	// news are the feasible nodes that must be asked about, with their positions
	// among the feasible ones.
	news   []*framework.NodeInfo
	at     []int
	scores framework.Scores
}

// score returns the best of the feasible nodes; among equals, any.
func (p *placer) score(ctx context.Context, s *search) (*framework.NodeInfo, error) {
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
	return p.feasible[p.best(totals)], nil
}

// runScore calls plugins to score the feasible nodes; plugins that sign pods are
// called only for nodes that they have not scored for a pod that is alike.
func (p *placer) runScore(ctx context.Context, s *search, plugins []framework.WeightedScore) *framework.Status {
	if !p.remembering {
		return p.scores.Run(ctx, plugins, s.state, s.pod, p.feasible)
	}
	w := &p.worth
	w.part(plugins)
	if status := p.scores.Run(ctx, w.others, s.state, s.pod, p.feasible); !status.IsSuccess() {
		return status
	}
	known, generations := recall(&w.known, s.profile, w.signers, s.pod, len(p.snapshot.Turns())), p.snapshot.Generations()
	w.news, w.at = w.news[:0], w.at[:0]
	for i, node := range p.feasible {
		if remembered := &known[p.places[i]]; remembered.generation == generations[p.places[i]] {
			p.scores.Totals[i] += remembered.said
		} else {
			w.news, w.at = append(w.news, node), append(w.at, i)
		}
	}
	defer func() { clear(w.news) }() // the next attempt may have fewer, and must not keep these nodes alive
	status := w.scores.Run(ctx, w.signing, s.state, s.pod, w.news)
	if !status.IsSuccess() {
		return status
	}
	for i, score := range w.scores.Totals {
		at := w.at[i]
		p.scores.Totals[at] += score
		known[p.places[at]] = answer[int64]{w.news[i].Generation, score}
	}
	return status
}

// part separates the plugins that sign pods from the others, in reused memory.
func (w *worth) part(plugins []framework.WeightedScore) {
	w.signing, w.signers, w.others = w.signing[:0], w.signers[:0], w.others[:0]
	for _, plugin := range plugins {
		_, signs := plugin.Score.(framework.Sign)
		_, normalizes := plugin.Score.(framework.Normalize)
		if signs && !normalizes {
			w.signing, w.signers = append(w.signing, plugin), append(w.signers, plugin.Score)
		} else {
			w.others = append(w.others, plugin)
		}
	}
}

// best is the index of the highest score; among equals, of any of them.
func (p *placer) best(scores []int64) int {
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
