package framework

import (
	"slices"
	"sort"
	"time"

	"kctl/proto/relay"
)

// StateKey names what one plugin keeps in a CycleState.
type StateKey string

// CycleState carries what plugins prepare at one point and read at a later
// one, within one attempt at one pod. Only PreFilter, PreScore and Reserve
// write, one after the other; all others read.
type CycleState struct {
	entries []stateEntry
	skip    []skipped
	// extensions are those of the PreFilter plugins that did not skip the pod.
	extensions []PreFilterExtensions

	// Nodes are all nodes of the attempt's snapshot, by name; WithAffinity are those
	// with pods that have rules about other pods.
	Nodes, WithAffinity []*NodeInfo
	// NoPreferNoSchedule says that no node has a taint of that effect, so there is no
	// need to look for one.
	NoPreferNoSchedule bool
	// Image looks up an image by its name (ImageName); nil if no node has it.
	Image func(name string) *Image
	// Tallies are what the snapshot keeps for CycleState.Tally; nil for nothing.
	Tallies *Tallies
	// Observer is called with the durations of this attempt's plugins; usually
	// nil.
	Observer Observer
	// Stamps are the moments of the attempt.
	Stamps *relay.Stamps
}

type stateEntry struct {
	key   StateKey
	value any
}

// skipped is what a plugin skips.
type skipped struct {
	plugin        string
	filter, score bool
}

// Observer measures plugins. It is asked for the time, because this package
// reads no clock.
type Observer interface {
	Now() time.Time
	Plugin(plugin, point string, code Code, began time.Time)
}

// observe calls a plugin, and measures it if there is an Observer.
func (s *CycleState) observe(plugin Plugin, point string, call func() *Status) *Status {
	if s.Observer == nil {
		return call()
	}
	began := s.Observer.Now()
	status := call()
	s.Observer.Plugin(plugin.Name(), point, status.Code(), began)
	return status
}

// NewCycleState returns an empty state of an attempt with these stamps.
func NewCycleState(stamps *relay.Stamps) *CycleState {
	return &CycleState{Stamps: stamps}
}

// Write keeps value under key. An attempt has a handful of keys: a short slice
// is searched faster than a map.
func (s *CycleState) Write(key StateKey, value any) {
	for i := range s.entries {
		if s.entries[i].key == key {
			s.entries[i].value = value
			return
		}
	}
	s.entries = append(s.entries, stateEntry{key, value})
}

// Read returns what was kept under key, or nil.
func (s *CycleState) Read(key StateKey) any {
	for i := range s.entries {
		if s.entries[i].key == key {
			return s.entries[i].value
		}
	}
	return nil
}

// Node is the node of that name in the attempt's snapshot, nil if there is none.
func (s *CycleState) Node(name string) *NodeInfo {
	at := sort.Search(len(s.Nodes), func(i int) bool { return s.Nodes[i].Name() >= name })
	if at == len(s.Nodes) || s.Nodes[at].Name() != name {
		return nil
	}
	return s.Nodes[at]
}

// Cloner is for what is kept in a CycleState and changed after PreFilter, by
// PreFilterExtensions.
type Cloner interface {
	Clone() any
}

// Clone returns a state for a what-if: its changes are not seen in s.
func (s *CycleState) Clone() *CycleState {
	c := *s
	c.entries = slices.Clone(s.entries)
	for i := range c.entries {
		if value, changes := c.entries[i].value.(Cloner); changes {
			c.entries[i].value = value.Clone()
		}
	}
	c.skip = slices.Clone(s.skip)
	return &c
}

// skips is what one plugin skips; few plugins do.
func (s *CycleState) skips(plugin string) *skipped {
	for i := range s.skip {
		if s.skip[i].plugin == plugin {
			return &s.skip[i]
		}
	}
	return nil
}

func (s *CycleState) skipsFilter(plugin string) bool {
	skipped := s.skips(plugin)
	return skipped != nil && skipped.filter
}

// WhatIf returns a state for RunAddPod and RunRemovePod: a clone, or s itself
// where no plugin keeps anything that these would change.
func (s *CycleState) WhatIf() *CycleState {
	if len(s.extensions) == 0 {
		return s
	}
	return s.Clone()
}

func (s *CycleState) skipFilter(plugin string) {
	if known := s.skips(plugin); known != nil {
		known.filter = true
	} else {
		s.skip = append(s.skip, skipped{plugin: plugin, filter: true})
	}
}

func (s *CycleState) skipScore(plugin string) {
	if known := s.skips(plugin); known != nil {
		known.score = true
	} else {
		s.skip = append(s.skip, skipped{plugin: plugin, score: true})
	}
}
