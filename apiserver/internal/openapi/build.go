package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// What documents are made from is several times their size, and is not kept.

// customs are the custom resources, and a mark of their state.
func (h *Handler) customs() ([]Custom, any) {
	if h.source == nil {
		return nil, nil
	}
	changed := h.source.Changed()
	return h.source.Customs(), changed
}

func (h *Handler) remotes() []Remote {
	if h.source == nil {
		return nil
	}
	return h.source.Remotes()
}

func (h *Handler) changed() any {
	if h.source == nil {
		return nil
	}
	return h.source.Changed()
}

// second is the document of v2.
func (h *Handler) second() (*whole, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.whole.done && h.whole.changed == h.changed() {
		return &h.whole.value, nil
	}
	customs, changed := h.customs()
	m, err := newModel(h.entries, h.created, customs)
	if err != nil {
		return nil, err
	}
	document := m.document(h.release)
	for _, remote := range h.remotes() {
		if remote.Second == nil {
			continue
		}
		if err := adopt(document, remote.Second); err != nil {
			return nil, err
		}
	}
	var all whole
	if all.json, err = newJSONAnswer(document); err != nil {
		return nil, err
	}
	encoded, err := documentMessage(document)
	if err != nil {
		return nil, err
	}
	if all.protobuf, err = newAnswer(encoded, protobufProper); err != nil {
		return nil, err
	}
	h.whole = made[whole]{all, changed, true}
	return &h.whole.value, nil
}

// third is the list of the documents of v3, and the documents by name.
func (h *Handler) third() (answer, func(name string) (answer, bool), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.index.done || h.index.changed != h.changed() {
		if err := h.makeThird(); err != nil {
			return answer{}, nil, err
		}
	}
	own, grown := h.own, h.grown
	return h.index.value, func(name string) (answer, bool) {
		if a, ok := own[name]; ok {
			return a, true
		}
		g, ok := grown[name]
		return g.answer, ok
	}, nil
}

func (h *Handler) makeThird() error {
	if h.own == nil {
		m, err := newModel(h.entries, h.created, nil)
		if err != nil {
			return err
		}
		own := make(map[string]answer, len(m.groups))
		for _, g := range m.groups {
			if own[documentName(g.version)], err = newJSONAnswer(m.groupDocument(g, h.release)); err != nil {
				return err
			}
		}
		h.own = own
	}
	customs, changed := h.customs()
	next, err := h.grow(customs)
	if err != nil {
		return err
	}
	paths := map[string]any{}
	for name, a := range h.own {
		paths[name] = map[string]any{"serverRelativeURL": groupURL(name, a.etag)}
	}
	for name, g := range next {
		paths[name] = map[string]any{"serverRelativeURL": groupURL(name, g.etag)}
	}
	for _, remote := range h.remotes() {
		if remote.Third != "" {
			paths[documentName(remote.GroupVersion)] = map[string]any{"serverRelativeURL": remote.Third}
		}
	}
	index, err := newJSONAnswer(map[string]any{"paths": paths})
	if err != nil {
		return err
	}
	h.grown, h.index, h.encoded = next, made[answer]{index, changed, true}, map[string]answer{}
	return nil
}

// encode is a document of v3 in protobuf. It has the hash of the one in JSON, by
// which clients name both.
func (h *Handler) encode(group answer) (answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a, ok := h.encoded[group.etag]; ok {
		return a, nil
	}
	text, err := group.unzip()
	if err != nil {
		return answer{}, err
	}
	var document map[string]any
	if err := json.NewDecoder(text).Decode(&document); err != nil {
		return answer{}, fmt.Errorf("openapi: decoding: %w", err)
	}
	encoded, err := thirdMessage(document)
	if err != nil {
		return answer{}, err
	}
	a, err := newAnswer(encoded, thirdProper)
	if err != nil {
		return answer{}, err
	}
	a.etag = group.etag
	h.encoded[group.etag] = a
	return a, nil
}

// grow makes the documents of the groups of custom resources. Those whose
// resources have not changed stay.
func (h *Handler) grow(customs []Custom) (map[string]grown, error) {
	byGroup := map[runtimeschema.GroupVersion][]Custom{}
	marks := map[runtimeschema.GroupVersion]string{}
	for _, c := range customs {
		gv := c.GVR().GroupVersion()
		byGroup[gv] = append(byGroup[gv], c)
		marks[gv] += fmt.Sprintf("%s %s %v %v\n", c.Name, c.Mark, c.HasStatus, c.Parts)
	}
	next := make(map[string]grown, len(byGroup))
	for _, gv := range slices.SortedFunc(maps.Keys(byGroup), func(a, b runtimeschema.GroupVersion) int { return compare(a.String(), b.String()) }) {
		name := documentName(gv)
		if _, taken := h.own[name]; taken {
			continue
		}
		if have, ok := h.grown[name]; ok && have.of == marks[gv] {
			next[name] = have
			continue
		}
		m, err := newModel(nil, nil, byGroup[gv])
		if err != nil {
			return nil, err
		}
		a, err := newJSONAnswer(m.groupDocument(m.groups[0], h.release))
		if err != nil {
			return nil, err
		}
		next[name] = grown{marks[gv], a}
	}
	return next, nil
}

func documentName(gv runtimeschema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
