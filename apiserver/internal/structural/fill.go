package structural

// Default fills in what was left out. A null where none may be gives way to the
// default.
func (s *Schema) Default(value any) { s.fill(value, false) }

// Complete is Default for what a client sent or etcd holds: there a null where
// none may be is as good as left out, and is dropped. What was merged keeps it
// and is refused for it.
func (s *Schema) Complete(value any) { s.fill(value, true) }

func (s *Schema) fill(value any, dropNulls bool) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, property := range s.properties {
			have, found := v[name]
			if property.hasFallback && (!found || have == nil && !property.props.Nullable) {
				v[name] = copyValue(property.fallback)
			}
		}
		for name, item := range v {
			property := s.properties[name]
			if property == nil {
				property = s.values
			}
			if property == nil {
				continue
			}
			if item == nil && dropNulls && !property.nullable() {
				delete(v, name)
				continue
			}
			property.fill(item, dropNulls)
		}
	case []any:
		for _, item := range v {
			s.items.fill(item, dropNulls)
		}
	}
}

// nullable: a schema that says nothing of the type takes null too.
func (s *Schema) nullable() bool {
	return s.props.Nullable || s.preserve && s.props.Type == ""
}

// HasDefaults tells whether Default may ever do anything but drop nulls.
func (s *Schema) HasDefaults() bool {
	if s == nil {
		return false
	}
	if s.hasFallback || s.items.HasDefaults() || s.values.HasDefaults() {
		return true
	}
	for _, property := range s.properties {
		if property.HasDefaults() {
			return true
		}
	}
	return false
}
