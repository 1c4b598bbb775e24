package structural

import (
	"bytes"

	"kctl/apiserver/internal/storage/raw"
)

// Changes are what Settled looks for.
type Changes struct {
	// Prune: what Prune drops.
	Prune bool
	// Nulls: those that are not allowed, which Complete drops or replaces. Defaults: what it
	// and Default fill in, also in place of a null.
	Nulls, Defaults bool
	// Metadata: what Repair changes.
	Metadata bool
}

// Settled reports whether it is certain that none of these changes would be made in an
// encoded object if it were decoded. It decodes nothing: nearly every stored object is
// settled, and decoding one takes 25 times as long as looking through it. It may report
// false for an object that would stay as it is.
func (s *Schema) Settled(object []byte, changes Changes) bool {
	if s == nil {
		if !changes.Metadata {
			return true
		}
		s, changes = nothing, Changes{Metadata: true}
	}
	c := &settledCheck{text: object, Changes: changes}
	i := raw.SkipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return false
	}
	_, ok := c.object(i, s, bounds{root: true, whole: true, prune: changes.Prune, preserve: s.preserve})
	return ok
}

// settledCheck goes through an object like pruner.value and Schema.fill together. Its
// functions take the position of a value, and return that of what follows it; ok is false
// as soon as something may change.
type settledCheck struct {
	Changes

	text []byte
}

// bounds are what pruner's functions take besides the value and its schema.
// root: it is that of the object itself.
type bounds struct{ root, whole, prune, preserve bool }

func (c *settledCheck) skip(i int) (end int, ok bool) {
	end, err := raw.SkipValue(c.text, i)
	return end, err == nil
}

func (c *settledCheck) value(i int, s *Schema, prune, preserve bool) (end int, ok bool) {
	if s == nil || i >= len(c.text) {
		return c.skip(i)
	}
	preserve = preserve || s.preserve
	switch c.text[i] {
	case '{':
		return c.object(i, s, bounds{whole: s.embedded, prune: prune, preserve: preserve})
	case '[':
		items := s.items
		if items == nil && prune && !preserve {
			items = nothing
		}
		return c.list(i, items, prune, preserve)
	}
	return c.skip(i)
}

func (c *settledCheck) list(i int, items *Schema, prune, preserve bool) (end int, ok bool) {
	if items == nil {
		return c.skip(i)
	}
	if i = raw.SkipSpace(c.text, i+1); c.at(i, ']') {
		return i + 1, true
	}
	for {
		if i, ok = c.value(i, items, prune, preserve); !ok {
			return 0, false
		}
		if i, ok = c.next(i); !ok {
			return i + 1, c.at(i, ']')
		}
	}
}

func (c *settledCheck) object(i int, s *Schema, b bounds) (end int, ok bool) {
	if len(s.properties) == 0 && s.values == nil && (!b.prune || b.preserve || s.anyValues) && !(b.whole && c.Metadata) {
		return c.skip(i)
	}
	defaulted, last := 0, []byte(nil)
	if i = raw.SkipSpace(c.text, i+1); c.at(i, '}') {
		return i + 1, !c.Defaults || s.defaulted == 0
	}
	for {
		key, start, ok := c.key(i)
		// The encoder sorts. Names in another order may be there twice.
		if !ok || (b.whole || s.defaulted > 0) && last != nil && bytes.Compare(key, last) <= 0 {
			return 0, false
		}
		last = key
		if property := s.properties[string(key)]; property != nil && property.hasFallback && (property.props.Nullable || !c.at(start, 'n')) {
			defaulted++
		}
		if i, ok = c.member(start, key, s, b); !ok {
			return 0, false
		}
		if i, ok = c.next(i); !ok {
			return i + 1, c.at(i, '}') && (!c.Defaults || defaulted == s.defaulted)
		}
	}
}

// key reads the name at i, and returns where its value starts. It does not read names
// with escapes, which are rare.
func (c *settledCheck) key(i int) (key []byte, start int, ok bool) {
	end, err := raw.SkipString(c.text, i)
	if err != nil {
		return nil, 0, false
	}
	key = c.text[i+1 : end-1]
	i = raw.SkipSpace(c.text, end)
	return key, raw.SkipSpace(c.text, i+1), c.at(i, ':') && bytes.IndexByte(key, '\\') < 0
}

func (c *settledCheck) member(start int, key []byte, s *Schema, b bounds) (end int, ok bool) {
	prune := b.prune && !(b.whole && objectFields[string(key)])
	below := s.properties[string(key)]
	if below == nil {
		below = s.values
	}
	if b.whole && c.Metadata && objectFields[string(key)] {
		if string(key) == "metadata" {
			end, ok = c.metadata(start, b.root)
		} else if ok = c.at(start, '"'); ok {
			end, ok = c.skip(start)
		}
		if !ok || below == nil {
			return end, ok
		}
	}
	if below == nil {
		if prune && !b.preserve && !s.anyValues {
			return 0, false
		}
		return c.skip(start)
	}
	if c.Nulls && c.at(start, 'n') && !below.props.Nullable { // only null begins with an n
		return 0, false
	}
	return c.value(start, below, prune, false)
}

// next goes beyond a comma; ok is false, and next where it is, if there is none.
func (c *settledCheck) next(i int) (next int, ok bool) {
	if i = raw.SkipSpace(c.text, i); !c.at(i, ',') {
		return i, false
	}
	return raw.SkipSpace(c.text, i+1), true
}

func (c *settledCheck) at(i int, b byte) bool { return i < len(c.text) && c.text[i] == b }
