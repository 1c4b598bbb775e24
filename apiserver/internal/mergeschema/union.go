package mergeschema

import "maps"

// With returns s with the fields that other has in the same places and s has not. What both have
// is merged as s says.
func (s *Schema) With(other *Schema) *Schema {
	switch {
	case s == other, other == nil:
		return s
	case s == nil:
		return other
	case s.hasFields() && other.hasFields(), s.isList() && other.isList():
	default:
		return s
	}
	out := *s
	out.Element = s.Element.With(other.Element)
	out.Fields = maps.Clone(s.Fields)
	for name, field := range other.Fields {
		if out.Fields == nil {
			out.Fields = make(map[string]*Schema, len(other.Fields))
		}
		out.Fields[name] = s.Field([]byte(name)).With(field)
	}
	return &out
}

func (s *Schema) hasFields() bool {
	return s.Kind == Struct || s.Kind == Map || s.Kind == AtomicMap
}

func (s *Schema) isList() bool {
	return s.Kind == AtomicList || s.Kind == ListSet || s.Kind == ListMap
}
