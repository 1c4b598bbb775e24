package mergeschema

import "maps"

// With returns s with the fields that other has in the same places and s has not. What both have
// is merged as s says. It is s itself if other has no more.
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
	element, more := s.Element.With(other.Element), map[string]*Schema{}
	for name, field := range other.Fields {
		own, named := s.Fields[name]
		if !named {
			own = s.Element
		}
		if with := own.With(field); with != own || !named && element != s.Element {
			more[name] = with
		}
	}
	if element == s.Element && len(more) == 0 {
		return s
	}
	out := *s
	out.Element = element
	if len(more) > 0 {
		out.Fields = make(map[string]*Schema, len(s.Fields)+len(more))
		maps.Copy(out.Fields, s.Fields)
		maps.Copy(out.Fields, more)
	}
	return &out
}

func (s *Schema) hasFields() bool {
	return s.Kind == Struct || s.Kind == Map || s.Kind == AtomicMap
}

func (s *Schema) isList() bool {
	return s.Kind == AtomicList || s.Kind == ListSet || s.Kind == ListMap
}
