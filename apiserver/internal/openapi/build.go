package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// What documents are made from is several times their size, and is not kept.

// customResources are the custom resources, and a mark of their state.
func (h *Handler) customResources() ([]Custom, any) {
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

func (h *Handler) changeMark() any {
	if h.source == nil {
		return nil
	}
	return h.source.Changed()
}

// documentV2 is the document of v2.
func (h *Handler) documentV2() (*v2Document, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.whole.done && h.whole.changed == h.changeMark() {
		return &h.whole.value, nil
	}
	customs, changed := h.customResources()
	m, err := newModel(h.entries, h.created, customs)
	if err != nil {
		return nil, err
	}
	document := m.renderV2(h.release)
	for _, remote := range h.remotes() {
		if remote.V2 == nil {
			continue
		}
		if err := mergeRemote(document, remote.V2); err != nil {
			return nil, err
		}
	}
	var all v2Document
	if all.json, err = newJSONAnswer(document); err != nil {
		return nil, err
	}
	encoded, err := documentMessage(document)
	if err != nil {
		return nil, err
	}
	if all.protobuf, err = newAnswer(encoded, protobufTypeV2Proper); err != nil {
		return nil, err
	}
	h.whole = memoized[v2Document]{all, changed, true}
	return &h.whole.value, nil
}

// documentsV3 is the list of the documents of v3, and the documents by name.
func (h *Handler) documentsV3() (answer, func(name string) (answer, bool), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.index.done || h.index.changed != h.changeMark() {
		if err := h.buildV3(); err != nil {
			return answer{}, nil, err
		}
	}
	own, grown := h.builtinGroups, h.customGroups
	return h.index.value, func(name string) (answer, bool) {
		if a, ok := own[name]; ok {
			return a, true
		}
		g, ok := grown[name]
		return g.answer, ok
	}, nil
}

func (h *Handler) buildV3() error {
	if h.builtinGroups == nil {
		m, err := newModel(h.entries, h.created, nil)
		if err != nil {
			return err
		}
		own := make(map[string]answer, len(m.groups))
		for _, g := range m.groups {
			if own[g.document], err = newJSONAnswer(m.renderV3(g, h.release)); err != nil {
				return err
			}
		}
		h.builtinGroups = own
	}
	customs, changed := h.customResources()
	next, err := h.buildCustomGroups(customs)
	if err != nil {
		return err
	}
	paths := map[string]any{}
	for name, a := range h.builtinGroups {
		paths[name] = map[string]any{"serverRelativeURL": groupURL(name, a.etag)}
	}
	for name, g := range next {
		paths[name] = map[string]any{"serverRelativeURL": groupURL(name, g.etag)}
	}
	for _, remote := range h.remotes() {
		if remote.V3Path != "" {
			paths[documentName(remote.GroupVersion)] = map[string]any{"serverRelativeURL": remote.V3Path}
		}
	}
	index, err := newJSONAnswer(map[string]any{"paths": paths})
	if err != nil {
		return err
	}
	h.customGroups, h.index, h.protobufGroups = next, memoized[answer]{index, changed, true}, map[string]answer{}
	return nil
}

// encodeProtobuf returns a document of v3 in protobuf. It has the hash of the one in JSON, by
// which clients name both.
func (h *Handler) encodeProtobuf(group answer) (answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a, ok := h.protobufGroups[group.etag]; ok {
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
	encoded, err := documentMessageV3(document)
	if err != nil {
		return answer{}, err
	}
	a, err := newAnswer(encoded, protobufTypeV3Proper)
	if err != nil {
		return answer{}, err
	}
	a.etag = group.etag
	h.protobufGroups[group.etag] = a
	return a, nil
}

// buildCustomGroups makes the documents of the groups of custom resources. Those whose
// resources have not changed stay.
func (h *Handler) buildCustomGroups(customs []Custom) (map[string]customGroup, error) {
	byGroup := map[runtimeschema.GroupVersion][]Custom{}
	marks := map[runtimeschema.GroupVersion]string{}
	for _, c := range customs {
		gv := c.GVR().GroupVersion()
		byGroup[gv] = append(byGroup[gv], c)
		marks[gv] += fmt.Sprintf("%s %s %v %v\n", c.Name, c.Mark, c.HasStatus, c.Subresources)
	}
	next := make(map[string]customGroup, len(byGroup))
	for _, gv := range slices.SortedFunc(maps.Keys(byGroup), func(a, b runtimeschema.GroupVersion) int {
		return compare(a.String(), b.String())
	}) {
		name := documentName(gv)
		if _, taken := h.builtinGroups[name]; taken {
			continue
		}
		if have, ok := h.customGroups[name]; ok && have.mark == marks[gv] {
			next[name] = have
			continue
		}
		m, err := newModel(nil, nil, byGroup[gv])
		if err != nil {
			return nil, err
		}
		a, err := newJSONAnswer(m.renderV3(m.groups[0], h.release))
		if err != nil {
			return nil, err
		}
		next[name] = customGroup{marks[gv], a}
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
