package framework

import (
	"maps"
	"slices"
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
	skip    map[string]skipped

	// Nodes are all nodes of the attempt's snapshot; WithAffinity those that
	// have pods which say something about other pods.
	Nodes, WithAffinity []*NodeInfo
	// Image is what is known of an image by its name (ImageName), nil if no node
	// has it.
	Image func(name string) *Image
	// Observer is told how long the plugins of this attempt take; mostly nobody.
	Observer Observer
	// Relay collects the moments of the attempt.
	Relay *relay.Recorder
}

type stateEntry struct {
	key   StateKey
	value any
}

type skipped struct{ filter, score bool }

// Observer measures plugins. It is asked for the time, because this package
// reads no clock.
type Observer interface {
	Now() time.Time
	Plugin(plugin, point string, code Code, began time.Time)
}

// observe calls a plugin, and has it measured where somebody does.
func (s *CycleState) observe(plugin Plugin, point string, call func() *Status) *Status {
	if s.Observer == nil {
		return call()
	}
	began := s.Observer.Now()
	status := call()
	s.Observer.Plugin(plugin.Name(), point, status.Code(), began)
	return status
}

// NewCycleState returns an empty state that stamps to recorder.
func NewCycleState(recorder *relay.Recorder) *CycleState {
	return &CycleState{Relay: recorder}
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
	c.skip = maps.Clone(s.skip)
	return &c
}

func (s *CycleState) skipFilter(plugin string) {
	if s.skip == nil {
		s.skip = map[string]skipped{}
	}
	s.skip[plugin] = skipped{filter: true, score: s.skip[plugin].score}
}

func (s *CycleState) skipScore(plugin string) {
	if s.skip == nil {
		s.skip = map[string]skipped{}
	}
	s.skip[plugin] = skipped{filter: s.skip[plugin].filter, score: true}
}
