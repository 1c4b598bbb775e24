package interpodaffinity

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "InterPodAffinity"

const (
	filterKey framework.StateKey = Name + "/filter"
	scoreKey  framework.StateKey = Name + "/score"
)

var (
	refusedAffinity = framework.NewStatus(framework.UnschedulableAndUnresolvable,
		"node(s) didn't match pod affinity rules").By(Name)
	refusedAntiAffinity = framework.NewStatus(framework.Unschedulable,
		"node(s) didn't match pod anti-affinity rules").By(Name)
	refusedByExisting = framework.NewStatus(framework.Unschedulable,
		"node(s) didn't satisfy existing pods anti-affinity rules").By(Name)
	skip = framework.NewStatus(framework.Skip)
)

// Options are the plugin's arguments.
type Options struct {
	// HardPodAffinityWeight is the weight of a running pod's required affinity in
	// the score of nodes near it; upstream's default is 1.
	HardPodAffinityWeight int64
	// IgnorePreferredTermsOfExistingPods ignores running pods' terms, unless the
	// pod has preferences itself.
	IgnorePreferredTermsOfExistingPods bool
}

// Plugin implements PreFilter with its extensions, Filter, PreScore, Score and ScoreExtensions.
type Plugin struct {
	options    Options
	namespaces func(name string) labels.Set
}

// New returns the plugin; namespaces gives the labels of a namespace.
func New(options Options, namespaces func(name string) labels.Set) *Plugin {
	return &Plugin{options: options, namespaces: namespaces}
}

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// filterState is what PreFilter prepares.
type filterState struct {
	existingAnti framework.WhatIf // where running pods refuse this one
	affinity     framework.WhatIf // where pods are that this one must be with, by all of its terms
	anti         framework.WhatIf // where pods are that this one must not be with
	selfMatch    bool             // the pod is of the kind that it must be with
}

// Clone implements framework.Cloner.
func (s *filterState) Clone() any {
	return &filterState{
		existingAnti: s.existingAnti.Clone(), affinity: s.affinity.Clone(), anti: s.anti.Clone(), selfMatch: s.selfMatch,
	}
}

// AddPod implements framework.PreFilterExtensions.
func (p *Plugin) AddPod(_ context.Context, state *framework.CycleState, pod, added *framework.PodInfo,
	node *framework.NodeInfo) *framework.Status {
	p.change(state, pod, added, node.Node, 1)
	return nil
}

// RemovePod implements framework.PreFilterExtensions.
func (p *Plugin) RemovePod(_ context.Context, state *framework.CycleState, pod, removed *framework.PodInfo,
	node *framework.NodeInfo) *framework.Status {
	p.change(state, pod, removed, node.Node, -1)
	return nil
}

func (p *Plugin) change(state *framework.CycleState, pod, other *framework.PodInfo, node *core.Node, by int64) {
	s, ok := state.Read(filterKey).(*filterState)
	if !ok {
		return
	}
	if other.Affinity != nil {
		p.countMatches(other.Affinity.RequiredAnti, pod.Pod, node, s.existingAnti.Add, by)
	}
	if pod.Affinity != nil {
		p.countWith(pod.Affinity, other.Pod, node, s.affinity.Add, by)
		p.countMatches(pod.Affinity.RequiredAnti, other.Pod, node, s.anti.Add, by)
	}
}

// countMatches counts where node is for each of the terms that pod matches.
func (p *Plugin) countMatches(terms []framework.AffinityTerm, pod *core.Pod, node *core.Node, add framework.AddFunc, by int64) {
	for i := range terms {
		if term := &terms[i]; term.Matches(pod, p.namespaces) {
			add.At(node, term.TopologyKey, by)
		}
	}
}

// countWith counts where node is if own has to be with existing.
func (p *Plugin) countWith(own *framework.PodAffinity, existing *core.Pod, node *core.Node, add framework.AddFunc, by int64) {
	if len(own.Required) == 0 || !p.matchesAll(own.Required, existing) {
		return
	}
	for i := range own.Required {
		add.At(node, own.Required[i].TopologyKey, by)
	}
}

// noAffinity is the affinity of pods without rules about others.
var noAffinity framework.PodAffinity

// PreFilter counts, over all nodes, the pods that the rules are about.
func (p *Plugin) PreFilter(_ context.Context, state *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	own := pod.Affinity
	if own == nil {
		own = &noAffinity
	}
	if own.Err != nil {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, own.Err.Error()).By(Name)
	}
	s := &filterState{}
	if len(state.WithAffinity) > 0 {
		s.existingAnti = framework.NewWhatIf(state.Tally(identity(Name+" refusing", pod.Pod),
			func(node *framework.NodeInfo, add framework.AddFunc) {
				for _, existing := range node.WithAffinity {
					p.countMatches(existing.Affinity.RequiredAnti, pod.Pod, node.Node, add, 1)
				}
			}))
	}
	if len(own.Required) > 0 {
		s.affinity = framework.NewWhatIf(state.Tally(termsKey(Name+" with", own.Required), func(node *framework.NodeInfo, add framework.AddFunc) {
			for _, existing := range node.Pods {
				p.countWith(own, existing.Pod, node.Node, add, 1)
			}
		}))
		s.selfMatch = p.matchesAll(own.Required, pod.Pod)
	}
	if len(own.RequiredAnti) > 0 {
		s.anti = framework.NewWhatIf(state.Tally(termsKey(Name+" without", own.RequiredAnti),
			func(node *framework.NodeInfo, add framework.AddFunc) {
				for _, existing := range node.Pods {
					p.countMatches(own.RequiredAnti, existing.Pod, node.Node, add, 1)
				}
			}))
	}
	if s.existingAnti.Empty() && len(own.Required) == 0 && len(own.RequiredAnti) == 0 {
		return nil, skip
	}
	state.Write(filterKey, s)
	return nil, nil
}

func (p *Plugin) matchesAll(terms []framework.AffinityTerm, pod *core.Pod) bool {
	for i := range terms {
		if !terms[i].Matches(pod, p.namespaces) {
			return false
		}
	}
	return true
}

// Filter implements framework.Filter.
func (p *Plugin) Filter(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) *framework.Status {
	s, ok := state.Read(filterKey).(*filterState)
	if !ok {
		return framework.Unprepared(Name)
	}
	if pod.Affinity != nil {
		if !s.together(pod.Affinity.Required, node.Node) {
			return refusedAffinity
		}
		for i := range pod.Affinity.RequiredAnti {
			key := pod.Affinity.RequiredAnti[i].TopologyKey
			if value, has := node.Node.Labels[key]; has && s.anti.At(key, value) > 0 {
				return refusedAntiAffinity
			}
		}
	}
	if s.existingAnti.On(node.Node) > 0 {
		return refusedByExisting
	}
	return nil
}

// together reports whether the pods that the terms ask for are where node is.
// The first of a group of pods that must be with their own kind may go
// anywhere; otherwise it would wait for ever.
func (s *filterState) together(terms []framework.AffinityTerm, node *core.Node) bool {
	found := true
	for i := range terms {
		key := terms[i].TopologyKey
		value, has := node.Labels[key]
		if !has {
			return false
		}
		if s.affinity.At(key, value) == 0 {
			found = false
		}
	}
	return found || s.selfMatch && s.affinity.Empty()
}

// EventsToRegister implements framework.EnqueueExtensions.
func (p *Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{
		{Resource: framework.AssignedPodEvent, ActionType: framework.Add | framework.Delete | framework.UpdatePodLabel,
			QueueingHintFn: p.podHint},
		{Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeLabel},
		{Resource: framework.PodEvent, ActionType: framework.UpdatePodLabel},
	}
}

// podHint: a pod that starts to match the required affinity can help. So can
// one that stops matching it, because the first pod of its kind may go
// anywhere, and a deleted pod whose own anti-affinity matched this one. A pod
// that stops matching one of several anti-affinity terms is enough, because
// each may be about other places.
func (p *Plugin) podHint(pod *framework.PodInfo, event framework.ClusterEvent) bool {
	own := pod.Affinity
	if own == nil {
		own = &noAffinity
	}
	wanted := func(other *core.Pod) bool {
		return other != nil && len(own.Required) > 0 && p.matchesAll(own.Required, other)
	}
	freed := func(term framework.AffinityTerm) bool {
		return event.OldPod != nil && term.Matches(event.OldPod, p.namespaces) &&
			(event.NewPod == nil || !term.Matches(event.NewPod, p.namespaces))
	}
	switch {
	case wanted(event.OldPod) != wanted(event.NewPod), slices.ContainsFunc(own.RequiredAnti, freed):
		return true
	case event.NewPod != nil:
		return false // its own anti-affinity does not change
	}
	rules := framework.NewPodAffinity(event.OldPod)
	return rules != nil && p.matchesAny(rules.RequiredAnti, pod.Pod)
}

func (p *Plugin) matchesAny(terms []framework.AffinityTerm, other *core.Pod) bool {
	return slices.ContainsFunc(terms, func(term framework.AffinityTerm) bool { return term.Matches(other, p.namespaces) })
}
