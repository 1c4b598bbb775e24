package managedfields

import (
	"bytes"
	"encoding/json"
	"reflect"

	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

// ignored is the schema of what no manager owns. It is identified by its address.
var ignored = &mergeschema.Schema{Name: "ignored"}

// difference is the difference between two states of an object.
type difference struct {
	old, new document
	// changed are the paths that are new or have another value; removed are those
	// that are gone.
	changed, removed fieldSet

	arena arena
	text  bytes.Buffer // that new was made of
}

// reset makes d ready for the next two states.
func (d *difference) reset() {
	d.arena.reset()
	d.changed, d.removed = fieldSet{arena: &d.arena}, fieldSet{arena: &d.arena}
	d.text.Reset()
}

// read parses the two states.
func (d *difference) read(before []byte, obj core.Object) error {
	d.reset()
	if err := encode(obj, &d.text); err != nil {
		return err
	}
	if err := d.old.parse(before); err != nil {
		return err
	}
	return d.new.parse(d.text.Bytes())
}

// collect fills in the paths of a new object by its plan, nil for none. ok is
// false if they have to be found by comparing.
func (d *difference) collect(p *plan, obj core.Object) (ok bool) {
	d.reset()
	return p != nil && p.collect(reflect.ValueOf(obj).Elem(), &d.changed)
}

// compare fills in the paths.
func (d *difference) compare(s *mergeschema.Schema) error {
	return d.both(s, 0, 0, &d.changed, &d.removed)
}

// both compares a value that exists before and after.
func (d *difference) both(s *mergeschema.Schema, o, n int32, changed, removed *fieldSet) error {
	before, after := d.old.nodes[o], d.new.nodes[n]
	kind, err := d.kindOf(s, before.kind, after.kind)
	if err != nil {
		return err
	}
	switch kind {
	case mergeschema.Struct, mergeschema.Map:
		return d.objects(s, o, n, changed, removed)
	case mergeschema.ListSet, mergeschema.ListMap:
		if before.kind == 'n' && after.kind == '[' && after.first == none {
			changed.here = true
		}
		return d.lists(s, o, n, changed, removed)
	}
	if !equal(d.old.bytes(before.raw), d.new.bytes(after.raw)) {
		changed.here = true
	}
	return nil
}

// kindOf is how two values of a schema are compared; for a Deduced schema, it
// depends on the values. Values that don't fit their schema are left to the
// library.
func (d *difference) kindOf(s *mergeschema.Schema, before, after byte) (mergeschema.Kind, error) {
	if s == nil {
		return 0, errUnusual
	}
	want := byte('{')
	switch s.Kind {
	case mergeschema.Deduced:
		switch {
		case before == '{' && after == '{':
			return mergeschema.Map, nil
		case before == '{' || after == '{':
			return 0, errUnusual
		}
		return mergeschema.Scalar, nil
	case mergeschema.ListSet, mergeschema.ListMap:
		want = '['
	case mergeschema.Struct, mergeschema.Map:
	default:
		return s.Kind, nil
	}
	if before != want && before != 'n' || after != want && after != 'n' {
		return 0, errUnusual
	}
	return s.Kind, nil
}

func (d *difference) objects(s *mergeschema.Schema, o, n int32, changed, removed *fieldSet) error {
	hint := d.old.nodes[o].first
	for i := d.new.nodes[n].first; i != none; i = d.new.after(i) {
		name := d.new.bytes(d.new.nodes[i].name)
		field := s.Field(name)
		if field == ignored {
			continue
		}
		if d.new.nodes[i].escapeName {
			return errUnusual
		}
		before := d.old.member(o, hint, name)
		if before == none {
			if err := add(field, &d.new, i, changed.child(d.arena.field(name))); err != nil {
				return err
			}
			continue
		}
		hint = d.old.after(before)
		if err := d.inner(field, before, i, name, changed, removed); err != nil {
			return err
		}
	}
	hint = d.new.nodes[n].first
	for i := d.old.nodes[o].first; i != none; i = d.old.after(i) {
		name := d.old.bytes(d.old.nodes[i].name)
		field := s.Field(name)
		if field == ignored {
			continue
		}
		if d.old.nodes[i].escapeName {
			return errUnusual
		}
		if after := d.new.member(n, hint, name); after != none {
			hint = d.new.after(after)
			continue
		}
		if err := add(field, &d.old, i, removed.child(d.arena.field(name))); err != nil {
			return err
		}
	}
	return nil
}

// inner compares two members with the same name. Most are identical.
func (d *difference) inner(s *mergeschema.Schema, o, n int32, name []byte, changed, removed *fieldSet) error {
	if bytes.Equal(d.old.bytes(d.old.nodes[o].raw), d.new.bytes(d.new.nodes[n].raw)) {
		return nil
	}
	c, r := fieldSet{arena: &d.arena}, fieldSet{arena: &d.arena}
	if err := d.both(s, o, n, &c, &r); err != nil {
		return err
	}
	if !c.empty() || !r.empty() {
		element := d.arena.field(name)
		c.element, r.element = element, element
		changed.add(&c)
		removed.add(&r)
	}
	return nil
}

// lists compares lists whose elements are identified by keys or values.
func (d *difference) lists(s *mergeschema.Schema, o, n int32, changed, removed *fieldSet) error {
	before, err := elements(s, &d.old, o)
	if err != nil {
		return err
	}
	after, err := elements(s, &d.new, n)
	if err != nil {
		return err
	}
	for _, a := range after.list {
		b, found := before.find(a.element)
		if !found {
			if err := add(s.Element, &d.new, a.node, changed.child(a.element)); err != nil {
				return err
			}
			continue
		}
		if s.Kind == mergeschema.ListSet {
			continue
		}
		c, r := fieldSet{element: a.element, arena: &d.arena}, fieldSet{element: a.element, arena: &d.arena}
		if err := d.both(s.Element, b, a.node, &c, &r); err != nil {
			return err
		}
		changed.add(&c)
		removed.add(&r)
	}
	for _, b := range before.list {
		if _, found := after.find(b.element); !found {
			if err := add(s.Element, &d.old, b.node, removed.child(b.element)); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a value that exists on one side only, with everything in it, to the
// set.
func add(s *mergeschema.Schema, d *document, at int32, to *fieldSet) error {
	if s == nil {
		return errUnusual
	}
	to.here = true
	value := d.nodes[at]
	switch {
	case (s.Kind == mergeschema.Struct || s.Kind == mergeschema.Map || s.Kind == mergeschema.Deduced) && value.kind == '{':
		for i := value.first; i != none; i = d.after(i) {
			name := d.bytes(d.nodes[i].name)
			field := s.Field(name)
			if field == ignored {
				continue
			}
			if d.nodes[i].escapeName {
				return errUnusual
			}
			if err := add(field, d, i, to.child(to.arena.field(name))); err != nil {
				return err
			}
		}
	case (s.Kind == mergeschema.ListSet || s.Kind == mergeschema.ListMap) && value.kind == '[':
		inside, err := elements(s, d, at)
		if err != nil {
			return err
		}
		for _, e := range inside.list {
			if err := add(s.Element, d, e.node, to.child(e.element)); err != nil {
				return err
			}
		}
	case s.Kind == mergeschema.Struct || s.Kind == mergeschema.Map || s.Kind == mergeschema.ListSet || s.Kind == mergeschema.ListMap:
		if value.kind != 'n' {
			return errUnusual
		}
	}
	return nil
}

// equal compares two values that may be encoded differently.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if isPlain(kindOf(a), a) && isPlain(kindOf(b), b) {
		return false
	}
	x, errX := decoded(a)
	y, errY := decoded(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func kindOf(raw []byte) byte {
	switch raw[0] {
	case '{', '[', '"', 'n':
		return raw[0]
	}
	return '0'
}

func decoded(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}
