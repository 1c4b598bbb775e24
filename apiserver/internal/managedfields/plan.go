package managedfields

import (
	"reflect"
	"slices"
	"strconv"

	"kctl/apiserver/internal/mergeschema"
)

// In a new object, everything is new that an empty one lacks. That can be read
// from the object itself, without encoding it and parsing the JSON: a plan
// says, for one Go type in one schema, how each field is handled. Unusual cases
// are left to the comparison of JSON.

// plan is how the field set of a value of one type is collected.
type plan struct {
	kind planKind
	// members of an object, in the order of their elements.
	members []member
	// element is the plan of a map's or a list's elements.
	element *plan
	// keys identify the elements of a keyed list.
	keys []planKey
	// basic: a leaf that is no struct and has Go's own JSON encoding.
	basic bool
}

type planKind uint8

const (
	leafPlan planKind = iota
	objectPlan
	mapPlan
	setPlan
	keyedPlan
	strangePlan // not for us
)

// member is a field of a struct that a manager may own.
type member struct {
	index   []int
	element string
	plan    *plan
	// omitted reports whether a value is left out of the JSON; nil if none is.
	omitted func(reflect.Value) bool
	// always: an empty object has it, too.
	always bool
}

// planKey is one of the keys of a keyed list.
type planKey struct {
	name     string
	index    []int
	omitted  func(reflect.Value) bool
	standsIn string // for an omitted key; "" for none
}

// planner makes plans, one for each type and schema.
type planner map[planID]*plan

type planID struct {
	t reflect.Type
	s *mergeschema.Schema
}

// plan is the plan for t in the schema s.
func (p planner) plan(t reflect.Type, s *mergeschema.Schema) *plan {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known := p[planID{t, s}]; known != nil {
		return known
	}
	made := &plan{kind: strangePlan}
	p[planID{t, s}] = made // before its parts: types may contain themselves
	if s == nil || t.Kind() == reflect.Interface {
		return made
	}
	own := writesItself(t)
	switch s.Kind {
	case mergeschema.Scalar, mergeschema.AtomicList, mergeschema.AtomicMap:
		made.kind = leafPlan
		made.basic = !own && t.Kind() != reflect.Struct && t.Kind() != reflect.Array
	case mergeschema.Struct:
		if !own && t.Kind() == reflect.Struct {
			p.object(made, t, s)
		}
	case mergeschema.Map:
		if !own && t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && !writesItself(t.Key()) && s.Element != nil &&
			len(s.Fields) == 0 {
			made.kind, made.element = mapPlan, p.plan(t.Elem(), s.Element)
		}
	case mergeschema.ListSet:
		if !own && t.Kind() == reflect.Slice && isName(t.Elem()) {
			made.kind = setPlan
		}
	case mergeschema.ListMap:
		if !own && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && s.Element != nil {
			p.keyed(made, t.Elem(), s)
		}
	}
	return made
}

// object makes the plan for a struct.
func (p planner) object(made *plan, t reflect.Type, s *mergeschema.Schema) {
	fields, ok := jsonFields(t)
	if !ok {
		return
	}
	for _, f := range fields {
		inner := s.Field([]byte(f.name))
		if inner == ignored {
			continue
		}
		made.members = append(made.members, member{
			index: f.index, element: "f:" + f.name, plan: p.plan(f.of, inner), omitted: f.omitted,
			always: f.omitted == nil || !f.omitted(reflect.New(f.of).Elem()),
		})
	}
	slices.SortFunc(made.members, func(a, b member) int { return compareElements(a.element, b.element) })
	made.kind = objectPlan
}

// keyed makes the plan for a list of structs of type t.
func (p planner) keyed(made *plan, t reflect.Type, s *mergeschema.Schema) {
	fields, ok := jsonFields(t)
	if !ok {
		return
	}
	keys := slices.SortedFunc(slices.Values(s.Keys), byName)
	for _, key := range keys {
		at := slices.IndexFunc(fields, func(f jsonField) bool { return f.name == key.Name })
		if at < 0 || !isName(fields[at].of) {
			return
		}
		k := planKey{name: key.Name, index: fields[at].index, omitted: fields[at].omitted}
		switch value := key.Default.(type) {
		case nil:
		case string:
			k.standsIn = `"` + value + `"`
		case int64:
			k.standsIn = strconv.FormatInt(value, 10)
		default:
			return
		}
		made.keys = append(made.keys, k)
	}
	made.kind, made.element = keyedPlan, p.plan(t, s.Element)
}

// isName reports whether values of t are simple enough to name an element.
func isName(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int32, reflect.Int64:
		return !writesItself(t)
	}
	return false
}

// collect adds to to everything that a new object has and an empty one lacks. ok
// is false for unusual cases; then to is useless.
func (p *plan) collect(v reflect.Value, to *fieldSet) (ok bool) {
	to.expect(len(p.members))
	for i := range p.members {
		m := &p.members[i]
		value := v.FieldByIndex(m.index)
		switch {
		case m.omitted != nil && m.omitted(value):
		case !m.always:
			if !m.plan.add(value, to.child(m.element)) {
				return false
			}
		case value.Kind() != reflect.Struct && value.IsZero(): // as in an empty object
		default:
			inside := fieldSet{element: m.element, arena: to.arena}
			if !m.plan.beyond(value, &inside) {
				return false
			}
			to.add(&inside)
		}
	}
	return true
}

// beyond adds to to the difference between a value and the empty one that is
// always there.
func (p *plan) beyond(v reflect.Value, to *fieldSet) (ok bool) {
	switch {
	case p.kind == objectPlan && v.Kind() == reflect.Struct:
		return p.collect(v, to)
	case p.kind == leafPlan:
		to.here = p.basic
		return p.basic || v.Kind() == reflect.Struct && v.IsZero()
	case (p.kind == setPlan || p.kind == keyedPlan) && v.Kind() == reflect.Slice && v.Len() == 0:
		to.here = true // an empty value is more than an omitted one
		return true
	}
	return p.inside(v, to)
}

// add adds a value with everything in it to to.
func (p *plan) add(v reflect.Value, to *fieldSet) (ok bool) {
	to.here = true
	return p.inside(v, to)
}

// inside adds the content of a value to to.
func (p *plan) inside(v reflect.Value, to *fieldSet) (ok bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return true
		}
		v = v.Elem()
	}
	switch p.kind {
	case leafPlan:
		return true
	case objectPlan:
		to.expect(len(p.members))
		for i := range p.members {
			m := &p.members[i]
			value := v.FieldByIndex(m.index)
			if m.omitted != nil && m.omitted(value) {
				continue
			}
			if !m.plan.add(value, to.child(m.element)) {
				return false
			}
		}
		return true
	case mapPlan:
		return p.entries(v, to)
	case setPlan, keyedPlan:
		return p.items(v, to)
	}
	return false
}

func (p *plan) entries(v reflect.Value, to *fieldSet) (ok bool) {
	if v.Len() == 0 {
		return true
	}
	for each := v.MapRange(); each.Next(); {
		name := each.Key().String()
		if !isSimple(name) {
			return false
		}
		if !p.element.add(each.Value(), to.child(to.arena.named(name))) {
			return false
		}
	}
	return true
}

func (p *plan) items(v reflect.Value, to *fieldSet) (ok bool) {
	var room [128]byte
	for i := range v.Len() {
		item := v.Index(i)
		name := room[:0]
		if p.kind == setPlan {
			name, ok = appendName(append(name, "v:"...), item)
		} else {
			name, ok = p.appendKeys(name, item)
		}
		if !ok {
			return false
		}
		c := to.child(string(name))
		if c.here { // it is there twice
			return false
		}
		c.here = true
		if p.kind == keyedPlan && !p.element.inside(item, c) {
			return false
		}
	}
	return true
}

// appendKeys writes the name of an element of a keyed list.
func (p *plan) appendKeys(to []byte, item reflect.Value) (_ []byte, ok bool) {
	to = append(to, "k:{"...)
	first := len(to)
	for i := range p.keys {
		key := &p.keys[i]
		value := item.FieldByIndex(key.index)
		left := key.omitted != nil && key.omitted(value)
		if left && key.standsIn == "" {
			continue
		}
		if len(to) > first {
			to = append(to, ',')
		}
		to = append(append(append(to, '"'), key.name...), `":`...)
		if left {
			to = append(to, key.standsIn...)
		} else if to, ok = appendName(to, value); !ok {
			return to, false
		}
	}
	return append(to, '}'), len(to) > first
}

// appendName writes a string or a number as JSON does.
func appendName(to []byte, v reflect.Value) (_ []byte, ok bool) {
	if v.Kind() != reflect.String {
		return strconv.AppendInt(to, v.Int(), 10), true
	}
	text := v.String()
	return append(append(append(to, '"'), text...), '"'), isSimple(text)
}

// isSimple reports whether text is unchanged in JSON.
func isSimple(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c >= 0x7f, c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// plans are those for new objects, by subresource; none if these have to be
// compared in JSON.
func (t *Tracker) plans() map[string]*plan {
	empty := reflect.ValueOf(t.options.New())
	if t.options.Custom || empty.Kind() != reflect.Pointer || !empty.Elem().IsZero() {
		return nil
	}
	made, out := planner{}, map[string]*plan{}
	for way, s := range t.schemas() {
		if p := made.plan(empty.Type().Elem(), s); p.kind == objectPlan {
			out[way] = p
		}
	}
	return out
}
