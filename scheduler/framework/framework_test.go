package framework

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"kctl/proto/core"
)

// plugin is whatever a test wants of one.
type plugin struct {
	name      string
	preFilter func() (*PreFilterResult, *Status)
	filter    *Status
	score     int64
	preScore  *Status
	reserve   *Status
	calls     *[]string
}

func (p *plugin) Name() string { return p.name }
func (p *plugin) PreFilter(context.Context, *CycleState, *PodInfo) (*PreFilterResult, *Status) {
	return p.preFilter()
}
func (p *plugin) Filter(context.Context, *CycleState, *PodInfo, *NodeInfo) *Status { return p.filter }
func (p *plugin) PreScore(context.Context, *CycleState, *PodInfo, []*NodeInfo) *Status {
	return p.preScore
}
func (p *plugin) Score(context.Context, *CycleState, *PodInfo, *NodeInfo) (int64, *Status) {
	return p.score, nil
}
func (p *plugin) Reserve(context.Context, *CycleState, *PodInfo, string) *Status {
	*p.calls = append(*p.calls, "reserve "+p.name)
	return p.reserve
}
func (p *plugin) Unreserve(context.Context, *CycleState, *PodInfo, string) {
	*p.calls = append(*p.calls, "unreserve "+p.name)
}
func (p *plugin) Bind(context.Context, *CycleState, *PodInfo, string) *Status {
	*p.calls = append(*p.calls, "bind "+p.name)
	return p.reserve
}

func nodesNamed(names ...string) func() (*PreFilterResult, *Status) {
	result := &PreFilterResult{NodeNames: map[string]struct{}{}}
	for _, n := range names {
		result.NodeNames[n] = struct{}{}
	}
	return func() (*PreFilterResult, *Status) { return result, nil }
}

func pod() *PodInfo { return NewPodInfo(&core.Pod{}) }

func TestPreFiltersNarrowTogether(t *testing.T) {
	p := &Profile{PreFilter: []PreFilter{
		&plugin{name: "a", preFilter: nodesNamed("1", "2")},
		&plugin{name: "b", preFilter: func() (*PreFilterResult, *Status) { return nil, nil }},
		&plugin{name: "c", preFilter: nodesNamed("2", "3")},
	}}
	outcome, status := p.RunPreFilter(t.Context(), NewCycleState(nil), pod())
	if _, two := outcome.NodeNames["2"]; !status.IsSuccess() || len(outcome.NodeNames) != 1 || !two {
		t.Errorf("%v %v", outcome, status)
	}
	if !slices.Equal(outcome.Narrowed, []string{"a", "c"}) {
		t.Errorf("narrowed by %v", outcome.Narrowed)
	}
}

// Where plugins leave no node, the others are not prepared, and don't filter.
func TestPreFiltersThatLeaveNoNode(t *testing.T) {
	unprepared := &plugin{name: "c", preFilter: func() (*PreFilterResult, *Status) { return nil, nil }}
	p := &Profile{
		PreFilter: []PreFilter{&plugin{name: "a", preFilter: nodesNamed("1")}, &plugin{name: "b", preFilter: nodesNamed("2")}, unprepared},
		Filter:    []Filter{unprepared},
	}
	state := NewCycleState(nil)
	outcome, status := p.RunPreFilter(t.Context(), state, pod())
	if !status.IsSuccess() || !outcome.LeavesOut("1") || !outcome.LeavesOut("2") {
		t.Errorf("%v %v", outcome, status)
	}
	if active := p.ActiveFilters(state); len(active) > 0 {
		t.Errorf("%s filters, whose PreFilter was not called", active[0].Name())
	}
}

func TestSkippedPluginsAreNotCalledLater(t *testing.T) {
	skips := &plugin{
		name:      "a",
		preFilter: func() (*PreFilterResult, *Status) { return nil, NewStatus(Skip) },
		filter:    NewStatus(Unschedulable, "called"),
		preScore:  NewStatus(Skip),
		score:     50,
	}
	p := &Profile{PreFilter: []PreFilter{skips}, Filter: []Filter{skips}, PreScore: []PreScore{skips}, Score: []WeightedScore{{skips, 1}}}
	state := NewCycleState(nil)
	if _, status := p.RunPreFilter(t.Context(), state, pod()); !status.IsSuccess() {
		t.Fatal(status.Reasons())
	}
	if status := RunFilters(t.Context(), p.ActiveFilters(state), state, pod(), &NodeInfo{}); !status.IsSuccess() {
		t.Error("the filter of a plugin that skipped was called")
	}
	nodes := []*NodeInfo{{}, {}}
	if status := p.RunPreScore(t.Context(), state, pod(), nodes); !status.IsSuccess() {
		t.Fatal(status.Reasons())
	}
	var scores Scores
	if scores.Run(t.Context(), p.ActiveScores(state), state, pod(), nodes); scores.Totals[0] != 0 {
		t.Error("the score of a plugin that skipped was counted")
	}
}

func TestStatusesCarryTheirPlugin(t *testing.T) {
	p := &plugin{name: "a", filter: NewStatus(Unschedulable, "full")}
	status := RunFilters(t.Context(), []Filter{p}, NewCycleState(nil), pod(), &NodeInfo{})
	if status.Plugin() != "a" || status.Message() != "full" {
		t.Errorf("%q says %q", status.Plugin(), status.Message())
	}
	broken := errors.New("broken")
	p.filter = AsError(broken)
	status = RunFilters(t.Context(), []Filter{p}, NewCycleState(nil), pod(), &NodeInfo{})
	if !errors.Is(status.Err(), broken) || !strings.Contains(status.Err().Error(), `running "a" filter plugin: `) {
		t.Errorf("the cause or the plugin is lost: %v", status.Err())
	}
}

func TestScoresAreWeightedAndBounded(t *testing.T) {
	p := &Profile{Score: []WeightedScore{{&plugin{name: "a", score: 10}, 3}, {&plugin{name: "b", score: 1}, 5}}}
	var scores Scores
	for _, attempt := range []string{"one", "the next"} {
		status := scores.Run(t.Context(), p.Score, NewCycleState(nil), pod(), []*NodeInfo{{}})
		if !status.IsSuccess() || scores.Totals[0] != 35 {
			t.Errorf("%s: %v %v, want 35", attempt, scores.Totals, status.Reasons())
		}
	}
	p.Score[0].Score = &plugin{name: "a", score: MaxNodeScore + 1}
	if status := scores.Run(t.Context(), p.Score, NewCycleState(nil), pod(), []*NodeInfo{{}}); status.Code() != Error {
		t.Error("a score above the largest is taken")
	}
}

func TestReserveIsUndoneInTheOppositeOrder(t *testing.T) {
	var calls []string
	p := &Profile{Reserve: []Reserve{&plugin{name: "a", calls: &calls}, &plugin{name: "b", calls: &calls, reserve: NewStatus(Unschedulable, "no")}}}
	if status := p.RunReserve(t.Context(), NewCycleState(nil), pod(), "n"); status.Plugin() != "b" {
		t.Errorf("refused by %q", status.Plugin())
	}
	p.RunUnreserve(t.Context(), NewCycleState(nil), pod(), "n")
	if want := []string{"reserve a", "reserve b", "unreserve b", "unreserve a"}; !slices.Equal(calls, want) {
		t.Errorf("called %v, want %v", calls, want)
	}
}

func TestBindersMaySkip(t *testing.T) {
	var calls []string
	p := &Profile{Bind: []Bind{
		&plugin{name: "a", calls: &calls, reserve: NewStatus(Skip)},
		&plugin{name: "b", calls: &calls}, &plugin{name: "c", calls: &calls},
	}}
	if status := p.RunBind(t.Context(), NewCycleState(nil), pod(), "n"); !status.IsSuccess() || len(calls) != 2 {
		t.Errorf("%v after %v", status.Reasons(), calls)
	}
	p.Bind = p.Bind[:1]
	if status := p.RunBind(t.Context(), NewCycleState(nil), pod(), "n"); status.Code() != Error {
		t.Error("no plugin bound the pod, and it counts as bound")
	}
}

func TestFitErrorWords(t *testing.T) {
	fit := NewFitError(5)
	fit.Refuse(NewStatus(Unschedulable, "Insufficient cpu", "Insufficient memory").By("Fit"), 1)
	fit.Refuse(NewStatus(Unschedulable, "Insufficient cpu").By("Fit"), 2)
	fit.Refuse(NewStatus(Unschedulable, "node(s) had untolerated taint(s)").By("Taint"), 2)
	if got, want := fit.Error(), "0/5 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint(s), 3 Insufficient cpu."; got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := fit.PluginNames(); !slices.Equal(got, []string{"Fit", "Taint"}) {
		t.Errorf("plugins %v", got)
	}
}
