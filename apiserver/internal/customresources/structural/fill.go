package structural

// Default fills in omitted fields. A null that is not allowed is replaced by
// the default.
func (s *Schema) Default(value any) { s.fill(value, false) }

// Complete is Default for what a client sent or etcd holds: there, a null that
// is not allowed counts as omitted, and is dropped. The result of a merge keeps
// it and is refused.
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
			if item == nil && dropNulls && !property.props.Nullable {
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

// DropNulls drops the nulls that are not allowed and that no default replaces: what a
// conversion between versions made counts as omitted, like what a client sent.
func (s *Schema) DropNulls(value any) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			property := s.properties[name]
			if property == nil {
				property = s.values
			}
			switch {
			case property == nil:
			case item != nil:
				property.DropNulls(item)
			case !property.props.Nullable && !property.hasFallback:
				delete(v, name)
			}
		}
	case []any:
		for _, item := range v {
			s.items.DropNulls(item)
		}
	}
}
