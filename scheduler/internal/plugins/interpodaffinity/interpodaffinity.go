// Package interpodaffinity is the plugin InterPodAffinity: pods that must, must
// not, would or would not be where certain other pods are, "where" being the
// same value of a label of the nodes. Rules of pods that already run count for
// the one that comes, too. The profile builds it; terms are parsed once, by
// framework.NewPodInfo.
package interpodaffinity

import (
	"context"
	"maps"

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
	// HardPodAffinityWeight is what a running pod's required affinity counts
	// for in the score of nodes near it; upstream's default is 1.
	HardPodAffinityWeight int64
	// IgnorePreferredTermsOfExistingPods leaves running pods' preferences out.
	IgnorePreferredTermsOfExistingPods bool
}

// Plugin implements PreFilter with its extensions, Filter, PreScore, Score and Normalize.
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

// place is one value of one label of nodes.
type place struct{ key, value string }

// counts says how many pods are at a place, or what it is worth.
type counts map[place]int64

func (c counts) add(node *core.Node, key string, by int64) {
	if value, has := node.Labels[key]; has {
		at := place{key, value}
		if c[at] += by; c[at] == 0 {
			delete(c, at) // none is as good as never any
		}
	}
}

// filterState is what PreFilter prepares.
type filterState struct {
	existingAnti counts // where running pods don't want this one
	affinity     counts // where pods are that this one must be with, by all of its terms
	anti         counts // where pods are that this one must not be with
	selfMatch    bool   // the pod is of the kind that it must be with
}

// Clone implements framework.Cloner.
func (s *filterState) Clone() any {
	return &filterState{
		existingAnti: maps.Clone(s.existingAnti), affinity: maps.Clone(s.affinity), anti: maps.Clone(s.anti), selfMatch: s.selfMatch,
	}
}

// AddPod implements framework.PreFilterExtensions.
func (p *Plugin) AddPod(_ context.Context, state *framework.CycleState, pod, added *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	p.change(state, pod, added, node.Node, 1)
	return nil
}

// RemovePod implements framework.PreFilterExtensions.
func (p *Plugin) RemovePod(_ context.Context, state *framework.CycleState, pod, removed *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	p.change(state, pod, removed, node.Node, -1)
	return nil
}

func (p *Plugin) change(state *framework.CycleState, pod, other *framework.PodInfo, node *core.Node, by int64) {
	s, ok := state.Read(filterKey).(*filterState)
	if !ok {
		return
	}
	if other.Affinity != nil {
		for i := range other.Affinity.RequiredAnti {
			if term := &other.Affinity.RequiredAnti[i]; term.Matches(pod.Pod, p.namespaces) {
				s.existingAnti.add(node, term.TopologyKey, by)
			}
		}
	}
	if pod.Affinity != nil {
		p.count(s, pod.Affinity, other.Pod, node, by)
	}
}

// PreFilter counts, over all nodes, the pods that the rules are about.
func (p *Plugin) PreFilter(_ context.Context, state *framework.CycleState, pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	own := pod.Affinity
	if own == nil {
		own = &framework.PodAffinity{}
	}
	if own.Err != nil {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, own.Err.Error()).By(Name)
	}
	s := &filterState{existingAnti: counts{}, affinity: counts{}, anti: counts{}}
	for _, node := range state.WithAffinity {
		for _, existing := range node.WithAffinity {
			for i := range existing.Affinity.RequiredAnti {
				if term := &existing.Affinity.RequiredAnti[i]; term.Matches(pod.Pod, p.namespaces) {
					s.existingAnti.add(node.Node, term.TopologyKey, 1)
				}
			}
		}
	}
	if len(own.Required) > 0 || len(own.RequiredAnti) > 0 {
		for _, node := range state.Nodes {
			for _, existing := range node.Pods {
				p.count(s, own, existing.Pod, node.Node, 1)
			}
		}
	}
	if len(s.existingAnti) == 0 && len(own.Required) == 0 && len(own.RequiredAnti) == 0 {
		return nil, skip
	}
	s.selfMatch = len(own.Required) > 0 && p.matchesAll(own.Required, pod.Pod)
	state.Write(filterKey, s)
	return nil, nil
}

func (p *Plugin) count(s *filterState, own *framework.PodAffinity, existing *core.Pod, node *core.Node, by int64) {
	if len(own.Required) > 0 && p.matchesAll(own.Required, existing) {
		for i := range own.Required {
			s.affinity.add(node, own.Required[i].TopologyKey, by)
		}
	}
	for i := range own.RequiredAnti {
		if term := &own.RequiredAnti[i]; term.Matches(existing, p.namespaces) {
			s.anti.add(node, term.TopologyKey, by)
		}
	}
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
func (p *Plugin) Filter(_ context.Context, state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	s, ok := state.Read(filterKey).(*filterState)
	if !ok {
		return nil
	}
	if pod.Affinity != nil {
		if !s.together(pod.Affinity.Required, node.Node) {
			return refusedAffinity
		}
		for i := range pod.Affinity.RequiredAnti {
			key := pod.Affinity.RequiredAnti[i].TopologyKey
			if value, has := node.Node.Labels[key]; has && s.anti[place{key, value}] > 0 {
				return refusedAntiAffinity
			}
		}
	}
	if len(s.existingAnti) == 0 {
		return nil
	}
	for key, value := range node.Node.Labels {
		if s.existingAnti[place{key, value}] > 0 {
			return refusedByExisting
		}
	}
	return nil
}

// together reports whether the pods that the terms ask for are where node is.
// The first of pods that must be with their own kind may go anywhere: it would
// wait for ever.
func (s *filterState) together(terms []framework.AffinityTerm, node *core.Node) bool {
	found := true
	for i := range terms {
		key := terms[i].TopologyKey
		value, has := node.Labels[key]
		if !has {
			return false
		}
		if s.affinity[place{key, value}] == 0 {
			found = false
		}
	}
	return found || len(s.affinity) == 0 && s.selfMatch
}

// EventsToRegister implements framework.Enqueue.
func (p *Plugin) EventsToRegister() []framework.EventInterest {
	return []framework.EventInterest{
		{Resource: framework.AssignedPodEvent, Actions: framework.Add | framework.Delete | framework.UpdatePodLabel, Hint: p.podHint},
		{Resource: framework.NodeEvent, Actions: framework.Add | framework.UpdateNodeLabel},
		{Resource: framework.PodEvent, Actions: framework.UpdatePodLabel},
	}
}

// podHint: a pod that comes can help only those that must be with it; one that
// goes, those that must not be with it or that it would not have.
func (p *Plugin) podHint(pod *framework.PodInfo, event framework.Event) bool {
	if event.Action != framework.Add {
		return true
	}
	if pod.Affinity == nil {
		return false
	}
	for i := range pod.Affinity.Required {
		if pod.Affinity.Required[i].Matches(event.NewPod, p.namespaces) {
			return true
		}
	}
	return false
}
